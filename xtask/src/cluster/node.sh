#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a node of the test cluster. It starts in mount, PID, network and UTS
# namespaces of its own, builds the node's file system in a folder (programs from the machine, read
# only; everything else the node's own), moves into it, says its pid, and collects orphans.
# When it ends, the kernel ends everything in the node.
#
# usage: node.sh NAME ROOT KUBERNETES CONTAINERD
#   ROOT: the node's folder; KUBERNETES, CONTAINERD: folders of programs, seen below /opt
set -eu
name=$1 root=$2 kubernetes=$3 containerd=$4

# The machine's /proc is still mounted, so this is the pid that the machine knows.
read -r pid rest < /proc/self/stat

mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mkdir -p dev etc/alternatives old opt/kubernetes opt/containerd proc run sys tmp usr var/log
chmod 1777 tmp

for folder in bin lib lib32 lib64 libx32 sbin; do
    if [ -L "/$folder" ]; then
        ln -sfn "$(readlink "/$folder")" "$folder"
    elif [ -d "/$folder" ]; then
        mkdir -p "$folder"
        mount --bind -o ro "/$folder" "$folder"
    fi
done
mount --bind -o ro /usr usr
mount --bind -o ro /etc/alternatives etc/alternatives
mount --bind -o ro "$kubernetes" opt/kubernetes
mount --bind -o ro "$containerd" opt/containerd
cp -L /etc/passwd /etc/group /etc/ld.so.cache etc/
: > etc/resolv.conf
printf '127.0.0.1 localhost\n' > etc/hosts

# Programs of an init that a node has: what they were asked for is seen by files. A service that
# runs is a file in /run/units.
mount -t tmpfs -o mode=755 tmpfs usr/local/sbin
cat > usr/local/sbin/reboot << 'PROGRAM'
#!/bin/sh
: > /run/reboot-asked
PROGRAM
cat > usr/local/sbin/systemctl << 'PROGRAM'
#!/bin/sh
verb=$1
shift 2
echo "$verb $*" >> /run/systemctl.log
for unit; do
    case $verb in
    is-active) if [ -e "/run/units/$unit" ]; then echo active; else echo inactive; fi ;;
    stop) rm "/run/units/$unit" ;;
    start) : > "/run/units/$unit" ;;
    esac
done
PROGRAM
chmod 755 usr/local/sbin/reboot usr/local/sbin/systemctl
mount -t tmpfs -o mode=755 tmpfs dev
while read -r device major minor; do
    mknod -m 666 "dev/$device" c "$major" "$minor"
done << DEVICES
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
kmsg 1 11
tty 5 0
DEVICES
mkdir dev/pts dev/shm dev/mqueue
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr

mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
echo "$name" > proc/sys/kernel/hostname
echo 1 > proc/sys/net/ipv4/ip_forward

# A kubelet sets these for the whole machine: give it files that only look like them.
mkdir -p run/sysctl
for file in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops \
    kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    copy=run/sysctl/$(echo $file | tr / .)
    cat proc/sys/$file > "$copy"
    mount --bind "$copy" proc/sys/$file
done

pivot_root . old
cd /
umount -l /old
rmdir /old
# Pods ask for mounts to be seen on the node and the other way round.
mount --make-rshared /

echo "$pid" > /run/node.pid.new
mv /run/node.pid.new /run/node.pid
while :; do
    sleep 3600 &
    wait
done

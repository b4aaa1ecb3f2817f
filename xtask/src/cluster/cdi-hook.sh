#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A stand-in for the container toolkit's nvidia-cdi-hook: makes the links that it is asked for, and
# leaves the linker's cache alone, as test images have none.
#
# usage: nvidia-cdi-hook create-symlinks --link TARGET::LINK...   (the container's state on stdin)
set -eu
verb=$1
shift
[ "$verb" = create-symlinks ] || exit 0
bundle=$(sed 's/.*"bundle":"\([^"]*\)".*/\1/')
while [ $# -gt 0 ]; do
    shift
    link=$bundle/rootfs${1#*::}
    mkdir -p "${link%/*}"
    ln -sf "${1%%::*}" "$link"
    shift
done

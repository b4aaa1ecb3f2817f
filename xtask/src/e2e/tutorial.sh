# SPDX-License-Identifier: Apache-2.0
# What people are taught to type, as they type it, with what must happen. Runs with `sh`; kubectl is
# that of the cluster. gpu-worker-01 has one H100 80 GB, gpu-worker-02 one A100 80 GB.
set -eu

# Every kubectl of this script is counted.
kubectl() {
    echo >> "$COUNT"
    command kubectl "$@"
}

step() {
    echo "== $*" >&2
}

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# eventually WHAT COMMAND: the command succeeds within a minute.
eventually() {
    tries=300
    until eval "$2" > /dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "$1: $2"
        sleep 0.2
    done
}

label() {
    command kubectl get node "$1" -o jsonpath="{.metadata.labels.$2}"
}

allocatable() {
    command kubectl get node "$1" -o jsonpath="{.status.allocatable.nvidia\\.com/$2}"
}

# has NODE RESOURCE COUNT: the node offers so many; none is 0 or nothing.
has() {
    eventually "$1 has $3 of nvidia.com/$2" \
        "count=\$(allocatable $1 '$(echo "$2" | sed 's/\./\\./g')') && [ \"\${count:-0}\" = $3 ]"
}

# pod NAMESPACE NAME RESOURCE COUNT [SELECTOR]: a workload that uses what it gets, also on a node that
# is cordoned to be looked at.
pod() {
    command kubectl apply -f - << POD
apiVersion: v1
kind: Pod
metadata: {name: $2, namespace: $1}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  nodeSelector: {${5:-}}
  tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}]
  containers:
  - name: main
    image: slicewright.dev/validation:dev
    imagePullPolicy: Never
    resources: {limits: {nvidia.com/$3: $4}}
POD
}

passed() {
    eventually "pod $2 passes its test" "command kubectl logs -n $1 $2 | grep 'Test PASSED'"
}

phase() {
    eventually "pod $2 is $3" "[ \"\$(command kubectl get pod -n $1 $2 -o jsonpath='{.status.phase}')\" = $3 ]"
}

gone() {
    command kubectl delete pod -n "$1" "$2" --now --timeout=60s
}

# refused NAMESPACE RESOURCE: one pod more is refused by the namespace's quota.
refused() {
    if pod "$1" too-many "$2" 1 2> "$SCRATCH/quota"; then fail "$1: one $2 too many is taken"; fi
    grep -q 'exceeded quota' "$SCRATCH/quota" || fail "not refused by the quota: $(cat "$SCRATCH/quota")"
}

# quota NAME RESOURCE COUNT: a quota of team-b, known to the API server.
quota() {
    kubectl apply -f - << QUOTA
apiVersion: v1
kind: ResourceQuota
metadata: {name: $1, namespace: team-b}
spec: {hard: {requests.nvidia.com/$2: "$3"}}
QUOTA
    eventually "quota $1 is known" "command kubectl get resourcequota $1 -n team-b -o jsonpath='{.status.hard}' | grep '$2'"
}

container() {
    command kubectl get pod -n "$1" "$2" -o jsonpath='{.status.containerStatuses[0].containerID}'
}

drv() {
    DRIVER_POD=$(kubectl get pods -n gpu-operator --field-selector spec.nodeName=gpu-worker-01 -o name | grep nvidia-driver-daemonset | head -n1)
    kubectl exec -n gpu-operator "${DRIVER_POD}" -- nvidia-smi -L
}

state() {
    kubectl wait node/gpu-worker-01 --for=jsonpath='{.metadata.labels.nvidia\.com/mig\.config\.state}'=success --timeout=15m
}

# edited FROM TO: another number of replicas in the sharing config.
edited() {
    kubectl get configmap -n gpu-operator gpu-sharing-config -o yaml | sed "s/replicas: $1/replicas: $2/" | kubectl apply -f -
}

# changed PROFILE RESOURCE COUNT: to that profile by the procedure that people follow.
changed() {
    kubectl cordon gpu-worker-01
    kubectl drain gpu-worker-01 --ignore-daemonsets --delete-emptydir-data
    kubectl label node gpu-worker-01 nvidia.com/mig.config="$1" --overwrite
    has gpu-worker-01 "mig-$2" "$3"
    state
    [ "$(drv | grep -c "MIG $2")" = "$3" ] || fail "$3 slices of $2"
    pod team-b validation "mig-$2" 1 'kubernetes.io/hostname: gpu-worker-01'
    passed team-b validation
    gone team-b validation
    kubectl uncordon gpu-worker-01
}

step "A: look"
for namespace in team-a team-b; do kubectl create namespace $namespace; done
has gpu-worker-01 gpu 1
kubectl get nodes -L nvidia.com/gpu.present -L nvidia.com/gpu.product -L nvidia.com/mig.capable -L nvidia.com/mig.config -L nvidia.com/mig.config.state | grep 'gpu-worker-01.*true.*NVIDIA-H100.*true'
[ "$(drv | wc -l)" = 1 ] || fail "one line a GPU"
[ "$(kubectl get node gpu-worker-01 -o jsonpath='{.metadata.labels}' | jq 'with_entries(select(.key | startswith("nvidia.com/"))) | length')" -ge 26 ] || fail "labels"
kubectl get node gpu-worker-01 -o jsonpath='{.metadata.labels.nvidia\.com/mig\.config}{"\n"}'
kubectl get clusterpolicy cluster-policy -o yaml | grep 'strategy: single'
kubectl get node gpu-worker-01 -o yaml > "$SCRATCH/node.yaml"
kubectl get configmap -n gpu-operator | grep gpu-worker-01-mig-config
kubectl get configmap -n gpu-operator gpu-worker-01-mig-config -o yaml > "$SCRATCH/generated.yaml"
for name in all-disabled all-enabled all-balanced all-1g.10gb all-2g.20gb all-3g.40gb; do
    grep -q " $name:" "$SCRATCH/generated.yaml" || fail "$name is not generated"
done

step "B1-B3: single, all-1g.10gb"
kubectl patch clusterpolicy cluster-policy --type='json' -p='[{"op":"replace","path":"/spec/mig/strategy","value":"single"}]'
kubectl label node gpu-worker-01 nvidia.com/mig.config=all-1g.10gb --overwrite
state
[ "$(kubectl get node gpu-worker-01 -o jsonpath='{.metadata.labels.nvidia\.com/mig\.config\.state}{"\n"}')" = success ] || fail "state"
[ "$(drv | grep -c 'MIG 1g.10gb')" = 7 ] || fail "7 slices"
has gpu-worker-01 gpu 7
kubectl describe node gpu-worker-01 | grep 'nvidia.com/gpu: *7'
[ "$(label gpu-worker-01 'nvidia\.com/gpu\.product')" = NVIDIA-H100-80GB-HBM3-MIG-1g.10gb ] || fail "product"

step "B6: a pod under single, on one slice"
pod team-a single gpu 1 'nvidia.com/mig.strategy: single, nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3-MIG-1g.10gb'
passed team-a single
[ "$(kubectl logs -n team-a single | grep -o 'MIG-[0-9a-f-]*' | wc -l)" = 1 ] || fail "one slice"

step "B8: a slice by its name on a single node stays pending"
pod team-a by-name mig-1g.10gb 1
eventually "pending, insufficient" "command kubectl get events -n team-a | grep 'by-name.*Insufficient nvidia.com/mig-1g.10gb'"
phase team-a by-name Pending
gone team-a by-name
gone team-a single

step "D2: under single a quota counts nvidia.com/gpu"
quota single gpu 3
for name in first second third; do pod team-b $name gpu 1; done
for name in first second third; do passed team-b $name; done
refused team-b gpu
for name in first second third; do gone team-b $name; done
kubectl delete resourcequota single -n team-b

step "B4: mixed, all-balanced"
kubectl patch clusterpolicy cluster-policy --type='json' -p='[{"op":"replace","path":"/spec/mig/strategy","value":"mixed"}]'
kubectl label node gpu-worker-01 nvidia.com/mig.config=all-balanced --overwrite
state
has gpu-worker-01 mig-1g.10gb 2
has gpu-worker-01 mig-2g.20gb 1
has gpu-worker-01 mig-3g.40gb 1
has gpu-worker-01 gpu 0
kubectl get node gpu-worker-01 -o jsonpath='{.status.allocatable}'
has gpu-worker-02 gpu 1

step "B10: strategy none knows no slices, and says what it means"
kubectl patch clusterpolicy cluster-policy --type='json' -p='[{"op":"replace","path":"/spec/mig/strategy","value":"none"}]'
has gpu-worker-01 mig-1g.10gb 0
has gpu-worker-01 gpu 1
eventually "the product is the board" "[ \"\$(label gpu-worker-01 'nvidia\.com/gpu\.product')\" = NVIDIA-H100-80GB-HBM3 ]"
kubectl patch clusterpolicy cluster-policy --type='json' -p='[{"op":"replace","path":"/spec/mig/strategy","value":"mixed"}]'
has gpu-worker-01 mig-1g.10gb 2
has gpu-worker-01 gpu 0

step "B8: a whole GPU on a node that is cut stays pending, and it is told why"
pod team-a whole gpu 1 'kubernetes.io/hostname: gpu-worker-01'
eventually "pending, insufficient" "command kubectl get events -n team-a | grep 'whole.*Insufficient nvidia.com/gpu'"
eventually "the node says why" "command kubectl describe node gpu-worker-01 | grep only-slices"
gone team-a whole

step "B5: a custom ConfigMap"
kubectl apply -f - << MAP
apiVersion: v1
kind: ConfigMap
metadata: {name: custom-mig-config, namespace: gpu-operator}
data:
  config.yaml: |
    version: v1
    mig-configs:
      all-disabled:
      - {devices: all, mig-enabled: false}
      five-1g-one-2g:
      - devices: all
        mig-enabled: true
        mig-devices: {"1g.10gb": 5, "2g.20gb": 1}
      eight:
      - devices: all
        mig-enabled: true
        mig-devices: {"1g.10gb": 8}
MAP
kubectl patch clusterpolicy cluster-policy --type='json' -p='[{"op":"replace","path":"/spec/migManager/config/name","value":"custom-mig-config"}]'
kubectl label node gpu-worker-01 nvidia.com/mig.config=five-1g-one-2g --overwrite
has gpu-worker-01 mig-1g.10gb 5
has gpu-worker-01 mig-2g.20gb 1
has gpu-worker-01 mig-3g.40gb 0
state

step "B5: what does not fit is refused, and nothing is touched"
kubectl label node gpu-worker-01 nvidia.com/mig.config=eight --overwrite
eventually "failed" "[ \"\$(label gpu-worker-01 'nvidia\.com/mig\.config\.state')\" = failed ]"
kubectl get node gpu-worker-01 -o jsonpath='{.metadata.annotations.slicewright\.dev/mig-config-reason}' | grep layout-does-not-fit
has gpu-worker-01 mig-1g.10gb 5

step "B7: a pod under mixed; E4: it survives a change on its GPU, and stops one that would hurt it"
kubectl label node gpu-worker-01 nvidia.com/mig.config=five-1g-one-2g --overwrite
state
pod team-a mixed mig-2g.20gb 1
passed team-a mixed
CONTAINER=$(container team-a mixed)
kubectl label node gpu-worker-01 nvidia.com/mig.config=all-1g.10gb --overwrite
eventually "refused" "[ \"\$(label gpu-worker-01 'nvidia\.com/mig\.config\.state')\" = failed ]"
eventually "the pod is named" "command kubectl get node gpu-worker-01 -o jsonpath='{.metadata.annotations.slicewright\.dev/mig-config-reason}' | grep team-a/mixed"
has gpu-worker-01 mig-1g.10gb 5
kubectl label node gpu-worker-01 nvidia.com/mig.config=all-balanced --overwrite
has gpu-worker-01 mig-3g.40gb 1
state
phase team-a mixed Running
[ "$(container team-a mixed)" = "$CONTAINER" ] || fail "the container is another one"
gone team-a mixed

step "C1, C2: time-slicing by label"
kubectl apply -f - << MAP
apiVersion: v1
kind: ConfigMap
metadata: {name: gpu-sharing-config, namespace: gpu-operator}
data:
  exclusive: |
    version: v1
    flags: {migStrategy: none}
  shared-4: |
    version: v1
    flags: {migStrategy: none}
    sharing:
      timeSlicing:
        renameByDefault: true
        failRequestsGreaterThanOne: true
        resources:
        - {name: nvidia.com/gpu, replicas: 4}
  slices-2: |
    version: v1
    sharing:
      timeSlicing:
        renameByDefault: true
        resources:
        - {name: nvidia.com/mig-1g.10gb, replicas: 2}
MAP
kubectl patch clusterpolicy cluster-policy -n gpu-operator --type merge -p '{"spec":{"devicePlugin":{"config":{"name":"gpu-sharing-config"}}}}'
has gpu-worker-02 gpu 1
kubectl label node gpu-worker-02 nvidia.com/device-plugin.config=shared-4 --overwrite
has gpu-worker-02 gpu.shared 4
has gpu-worker-02 gpu 0
[ "$(label gpu-worker-02 'nvidia\.com/gpu\.sharing-strategy')" = time-slicing ] || fail "sharing-strategy"
[ "$(label gpu-worker-02 'nvidia\.com/gpu\.replicas')" = 4 ] || fail "replicas"
kubectl describe node gpu-worker-02 | grep 'nvidia.com/gpu.shared: *4'

step "C3: three, then four pods share the GPU; D1: a quota refuses the fifth"
kubectl apply -f - << SET
apiVersion: apps/v1
kind: Deployment
metadata: {name: shared-gpu-validation, namespace: team-a}
spec:
  replicas: 3
  selector: {matchLabels: {app: shared-gpu-validation}}
  template:
    metadata: {labels: {app: shared-gpu-validation}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {nvidia.com/gpu.sharing-strategy: time-slicing}
      containers:
      - name: main
        image: slicewright.dev/validation:dev
        imagePullPolicy: Never
        resources: {limits: {nvidia.com/gpu.shared: 1}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: shared-gpu-quota, namespace: team-a}
spec: {hard: {requests.nvidia.com/gpu.shared: "4"}}
SET
kubectl rollout status -n team-a deployment/shared-gpu-validation --timeout=60s
kubectl scale -n team-a deployment/shared-gpu-validation --replicas=4
kubectl rollout status -n team-a deployment/shared-gpu-validation --timeout=60s
[ "$(kubectl get pods -n team-a -l app=shared-gpu-validation | grep -c Running)" = 4 ] || fail "four run"
eventually "the quota is used up" "kubectl describe resourcequota shared-gpu-quota -n team-a | grep 'gpu.shared *4 *4'"
refused team-a gpu.shared
kubectl scale -n team-a deployment/shared-gpu-validation --replicas=3
eventually "one has ended" "command kubectl get resourcequota shared-gpu-quota -n team-a -o jsonpath='{.status.used}' | grep '\"3\"'"
pod team-a fifth gpu.shared 1
passed team-a fifth
gone team-a fifth

step "C4: two replicas for one container are refused at the kubelet"
kubectl delete resourcequota shared-gpu-quota -n team-a
kubectl scale -n team-a deployment/shared-gpu-validation --replicas=2
eventually "two run" "[ \$(command kubectl get pods -n team-a -l app=shared-gpu-validation --no-headers | wc -l) = 2 ]"
pod team-a two gpu.shared 2
eventually "refused by the kubelet" "command kubectl get pod -n team-a two -o jsonpath='{.status.reason}' | grep UnexpectedAdmissionError"
kubectl get pod -n team-a two -o jsonpath='{.status.message}' | grep 'maximum request size for shared resources is 1'
gone team-a two

step "C6: an edit needs no restart, and a restart is harmless"
kubectl get configmap -n gpu-operator gpu-sharing-config -o yaml | sed 's/replicas: 4/replicas: 6/' | kubectl apply -f -
has gpu-worker-02 gpu.shared 6
kubectl rollout restart -n gpu-operator daemonset/nvidia-device-plugin-daemonset
kubectl rollout status -n gpu-operator daemonset/nvidia-device-plugin-daemonset
has gpu-worker-02 gpu.shared 6
[ "$(kubectl get pods -n team-a -l app=shared-gpu-validation | grep -c Running)" = 2 ] || fail "a restart hurt pods"
edited 6 1
eventually "broken: the last good one stays, and it is told" "command kubectl describe node gpu-worker-02 | grep config-invalid"
has gpu-worker-02 gpu.shared 6
edited 1 4
has gpu-worker-02 gpu.shared 4

step "C6: fewer replicas than are in use: down to those, and then to what is wanted"
kubectl scale -n team-a deployment/shared-gpu-validation --replicas=4
kubectl rollout status -n team-a deployment/shared-gpu-validation --timeout=60s
edited 4 3
eventually "it is told" "command kubectl get gpunode gpu-worker-02 -o jsonpath='{.status.findings}' | grep still-allocated"
has gpu-worker-02 gpu.shared 4
kubectl scale -n team-a deployment/shared-gpu-validation --replicas=3
has gpu-worker-02 gpu.shared 3
[ "$(kubectl get pods -n team-a -l app=shared-gpu-validation | grep -c Running)" = 3 ] || fail "pods were hurt"
edited 3 4
has gpu-worker-02 gpu.shared 4

step "C7: back to exclusive; GPUs in use come back when their pods end"
kubectl label node gpu-worker-02 nvidia.com/device-plugin.config=exclusive --overwrite
has gpu-worker-02 gpu.shared 0
eventually "it waits for its pods, and says so" "command kubectl describe node gpu-worker-02 | grep still-allocated"
has gpu-worker-02 gpu 0
kubectl delete -n team-a deployment/shared-gpu-validation
has gpu-worker-02 gpu 1
eventually "no sharing" "[ \"\$(label gpu-worker-02 'nvidia\.com/gpu\.sharing-strategy')\" = none ]"
eventually "the name is gone" "names=\$(command kubectl get node gpu-worker-02 -o jsonpath='{.status.capacity}') && ! echo \"\$names\" | grep gpu.shared"

step "C5: slices that are shared"
kubectl label node gpu-worker-01 nvidia.com/device-plugin.config=slices-2 --overwrite
has gpu-worker-01 mig-1g.10gb.shared 4
has gpu-worker-01 mig-1g.10gb 0
has gpu-worker-01 mig-3g.40gb 1

step "D2: the renamed name is counted by itself"
quota shared-slices mig-1g.10gb.shared 4
for name in first second third fourth; do pod team-b $name mig-1g.10gb.shared 1; done
for name in first second third fourth; do passed team-b $name; done
refused team-b mig-1g.10gb.shared
for name in first second third fourth; do gone team-b $name; done
kubectl delete resourcequota shared-slices -n team-b
kubectl label node gpu-worker-01 nvidia.com/device-plugin.config-
has gpu-worker-01 mig-1g.10gb 2

step "D2: each quota counts its exact name, and one on gpu limits no slice"
kubectl label node gpu-worker-01 nvidia.com/mig.config=five-1g-one-2g --overwrite
has gpu-worker-01 mig-1g.10gb 5
quota slices mig-1g.10gb 3
quota whole gpu 0
for name in first second third; do pod team-b $name mig-1g.10gb 1; done
for name in first second third; do passed team-b $name; done
refused team-b mig-1g.10gb
pod team-b other-name mig-2g.20gb 1
passed team-b other-name
for name in first second third other-name; do gone team-b $name; done
kubectl label node gpu-worker-01 nvidia.com/mig.config=all-balanced --overwrite
has gpu-worker-01 mig-3g.40gb 1

step "B9: request and limit that differ, and fractions, are refused by the API server"
for amount in '{limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: 1}}' '{limits: {nvidia.com/gpu: 500m}}'; do
    if kubectl create -f - << POD 2> /dev/null; then fail "$amount is taken"; fi
apiVersion: v1
kind: Pod
metadata: {name: wrong, namespace: team-b}
spec: {containers: [{name: main, image: slicewright.dev/validation:dev, resources: $amount}]}
POD
done

step "E1, E2: change by hand, and back"
PREVIOUS_PROFILE=$(kubectl get node gpu-worker-01 -o jsonpath='{.metadata.labels.nvidia\.com/mig\.config}')
changed all-2g.20gb 2g.20gb 3
changed "${PREVIOUS_PROFILE}" 3g.40gb 1

step "E3: MIG off"
kubectl label node gpu-worker-01 nvidia.com/mig.config=all-disabled --overwrite
has gpu-worker-01 gpu 1
has gpu-worker-01 mig-1g.10gb 0
state
pod team-a whole-again gpu 1 'kubernetes.io/hostname: gpu-worker-01'
passed team-a whole-again
gone team-a whole-again

step "F: when it fails"
kubectl logs -n gpu-operator -l app=nvidia-mig-manager -c nvidia-mig-manager | grep 'the layout is as'
kubectl get clusterpolicy cluster-policy -o jsonpath='{.spec.mig.strategy}{"\n"}' | grep mixed
kubectl get node gpu-worker-02 -o jsonpath='{.metadata.labels.nvidia\.com/device-plugin\.config}{"\n"}' | grep exclusive
kubectl label node gpu-worker-02 nvidia.com/device-plugin.config=shard-4 --overwrite
eventually "a label that names nothing is told" "command kubectl describe node gpu-worker-02 | grep config-not-found"
has gpu-worker-02 gpu 1
kubectl label node gpu-worker-02 nvidia.com/device-plugin.config-
kubectl describe resourcequota -n team-b
kubectl get pods -n gpu-operator -o wide
kubectl get nodes -L nvidia.com/gpu.product,nvidia.com/mig.capable,nvidia.com/mig.config,nvidia.com/mig.config.state,nvidia.com/gpu.sharing-strategy,nvidia.com/gpu.replicas
kubectl get pods -A -o wide > /dev/null

step "as it was"
kubectl label node gpu-worker-01 nvidia.com/mig.config-
kubectl patch clusterpolicy cluster-policy --type merge -p '{"spec":{"mig":{"strategy":"single"},"migManager":{"config":{"name":""}},"devicePlugin":{"config":{"name":""}}}}'
kubectl delete configmap -n gpu-operator custom-mig-config gpu-sharing-config
kubectl delete namespace team-a team-b --timeout=60s
has gpu-worker-01 gpu 1
has gpu-worker-02 gpu 1

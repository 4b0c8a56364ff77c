#!/bin/bash
# boot.sh DIR runs a node of Kubernetes with its control plane in namespaces of its own, with an image "rooftop"
# that has nothing but DIR/shared/rooftop. Run it by unshare -m -n -p -f --kill-child --mount-proc. DIR is seen
# there by the same name, and DIR/kubeconfig leads to it. $ROOFTOP_E2E_KUBERNETES is what
# .ci/install-kubernetes prints.
set -eu
dir=$1 home=$ROOFTOP_E2E_KUBERNETES unpacked=$ROOFTOP_E2E_KUBERNETES/root
mount --make-rprivate /
mkdir -p "$dir/data"
mount --bind "$dir" /mnt
# What this writes there must not be the machine's own.
for d in /run /tmp /var/tmp /var/log /var/lib; do mount -t tmpfs boot $d; done
mkdir -p "$dir"
mount --move /mnt "$dir"
mount --make-rshared /
cd "$dir/data"
ip link set lo up
# A node has an address and a default route before its kubelet starts.
ip link add d0 type bridge
ip addr add 192.0.2.1/24 dev d0
ip link set d0 up
ip route add default via 192.0.2.254 dev d0
export PATH=$unpacked/usr/sbin:$unpacked/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LD_LIBRARY_PATH=$unpacked/usr/lib/x86_64-linux-gnu XTABLES_LIBDIR=$unpacked/usr/lib/x86_64-linux-gnu/xtables

api=127.0.0.1:6443
openssl genrsa -out sa.key 2048 2>/dev/null
cat >tokens.csv <<END
admin-token,admin,admin,system:masters
tuner-token,tuner,tuner,
END
cat >audit.yaml <<END
apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: Metadata, users: [tuner], omitStages: [RequestReceived]}]
END
kubeconfig() { # kubeconfig USER
  cat <<END
apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "https://$api", insecure-skip-tls-verify: true}}]
users: [{name: $1, user: {token: $1-token}}]
contexts: [{name: $1, context: {cluster: lab, user: $1, namespace: default}}]
current-context: $1
END
}
kubeconfig admin >"$dir/admin.kubeconfig"
kubeconfig tuner >"$dir/kubeconfig"
etcd --data-dir etcd --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster default=http://127.0.0.1:2380 --unsafe-no-fsync >etcd.log 2>&1 &
apiserver() {
  "$home/bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="${api##*:}" \
    --cert-dir=certs --service-account-key-file=sa.key --service-account-signing-key-file=sa.key --service-account-issuer=https://kubernetes.default.svc \
    --token-auth-file=tokens.csv --authorization-mode=RBAC --service-cluster-ip-range=10.96.0.0/16 --enable-priority-and-fairness=false \
    --endpoint-reconciler-type=none --kubelet-preferred-address-types=InternalIP --audit-policy-file=audit.yaml --audit-log-path=audit.log >>api.log 2>&1 &
}
apiserver
cat >cni.conflist <<END
{"cniVersion":"0.4.0","name":"b","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,"ipMasq":false,
"ipam":{"type":"host-local","ranges":[[{"subnet":"10.88.0.0/16"}]],"dataDir":"$dir/data/ipam"}},{"type":"loopback"}]}
END
mkdir -p cni && mv cni.conflist cni/
cat >containerd.toml <<END
version = 2
root = "$dir/data/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/local/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$unpacked/usr/lib/cni"
    conf_dir = "$dir/data/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
END
containerd -c containerd.toml >containerd.log 2>&1 &
cat >kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
address: 192.0.2.1
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
nodeStatusUpdateFrequency: 1s
makeIPTablesUtilChains: false
enforceNodeAllocatable: []
evictionHard: {"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "100Mi", "nodefs.inodesFree": "1%"}
imageGCHighThresholdPercent: 99
imageGCLowThresholdPercent: 98
containerRuntimeEndpoint: unix:///run/containerd.sock
localStorageCapacityIsolation: false
resolvConf: ""
END
image() { # image NAME FILE: one of a single file
  mkdir -p "image/$1"
  cp "$2" "image/$1/"
  tar -C "image/$1" -cf "$1.layer" .
  local layer config
  layer=$(sha256sum "$1.layer" | cut -d' ' -f1)
  printf '{"architecture":"amd64","os":"linux","config":{"Entrypoint":["/%s"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "$1" "$layer" >"$1.json"
  config=$(sha256sum "$1.json" | cut -d' ' -f1)
  printf '[{"Config":"%s.json","RepoTags":["docker.io/local/%s:1"],"Layers":["%s.layer"]}]' "$1" "$1" "$1" >manifest.json
  tar -cf "$1.tar" manifest.json "$1.json" "$1.layer"
  until ctr -a /run/containerd.sock -n k8s.io images import "$1.tar" >>image.log 2>&1; do sleep 0.2; done
  : "$config"
}
image pause "$home/pause/pause"
image rooftop "$dir/shared/rooftop"
until curl -sk -H 'Authorization: Bearer admin-token' "https://$api/readyz" 2>/dev/null | grep -q '^ok'; do sleep 0.2; done
# Else the kubelet looks for it in vain at first, and tries again only after a while.
curl -sk -H 'Authorization: Bearer admin-token' -H 'Content-Type: application/json' -d '{"metadata": {"name": "node1", "labels": {"kubernetes.io/hostname": "node1"}}}' "https://$api/api/v1/nodes" >/dev/null
"$home/bin/kube-controller-manager" --kubeconfig="$dir/admin.kubeconfig" --service-account-private-key-file=sa.key --leader-elect=false --bind-address=127.0.0.1 \
  --cert-dir=certs-cm --controllers='*,-nodeipam,-cloud-node-lifecycle' --root-ca-file=certs/apiserver.crt >cm.log 2>&1 &
"$home/bin/kube-scheduler" --kubeconfig="$dir/admin.kubeconfig" --leader-elect=false --bind-address=127.0.0.1 --cert-dir=certs-s >scheduler.log 2>&1 &
"$home/bin/kubelet" --config=kubelet.yaml --kubeconfig="$dir/admin.kubeconfig" --root-dir="$dir/data/kubelet" --cert-dir=certs-k --hostname-override=node1 >kubelet.log 2>&1 &
wait

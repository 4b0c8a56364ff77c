#!/bin/bash
# run.sh DIR runs the commands of DIR/block.sh as they stand in the documentation, with DIR/bin on the path, in
# DIR/work: a server answers where they look for one, unless they start it, and process 4242 exists. Run it by
# unshare -m -n -p -f --kill-child --mount-proc. An exit code of rooftop that is a finding is no failure.
set -euo pipefail
dir=$1
mount --make-rprivate /
ip link set lo up
echo "127.0.0.1 localhost gpu-7" >"$dir/hosts"
mount --bind "$dir/hosts" /etc/hosts
export PATH=$dir/bin:$PATH HOME=$dir/home ROOFTOP_DURATION=8s
unset XDG_STATE_HOME
mkdir -p "$HOME"
cd "$dir/work"
echo 4241 >/proc/sys/kernel/ns_last_pid
sleep 600 &
[ $! = 4242 ] || { echo "the process is $!"; exit 1; }
if ! grep -q '^rooftop sim' "$dir/block.sh"; then
  port=8000
  ! grep -q ':8080' "$dir/block.sh" || port=8080
  rooftop sim Qwen/Qwen3-8B --sim-gpu "H100 SXM" --max-num-seqs 16 --sim-startup-time 0 --port "$port" 2>/dev/null &
  until curl -sf "http://127.0.0.1:$port/health"; do sleep 0.1; done
  rooftop load --url "http://127.0.0.1:$port" --clients 32 --duration 5m >/dev/null 2>&1 &
  sleep 2
fi
rooftop() {
  local code=0
  command rooftop "$@" || code=$?
  case $code in 0 | 3 | 4) ;; *) echo "exit code $code: rooftop $*"; return $code ;; esac
}
. "$dir/block.sh"

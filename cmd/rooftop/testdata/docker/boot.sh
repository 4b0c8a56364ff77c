#!/bin/bash
# boot.sh DIR runs Docker in namespaces of its own, with an image "empty" that has folders and no files. Run it
# by unshare -m -n -p -f --kill-child --mount-proc. DIR is seen there by the same name. $ROOFTOP_E2E_DOCKER is
# where .ci/install-docker unpacked it.
set -eu
dir=$1 unpacked=${ROOFTOP_E2E_DOCKER:-}/root
mount --make-rprivate /
mkdir -p "$dir/data"
mount --bind "$dir" /mnt
# What this writes there must not be the machine's own.
for d in /run /tmp /var/tmp; do mount -t tmpfs boot $d; done
mkdir -p "$dir"
mount --move /mnt "$dir"
ip link set lo up
export PATH=$unpacked/usr/sbin:$unpacked/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LD_LIBRARY_PATH=$unpacked/usr/lib/x86_64-linux-gnu XTABLES_LIBDIR=$unpacked/usr/lib/x86_64-linux-gnu/xtables
mkdir -p "$dir/image"/{usr,proc,sys,dev,tmp,etc,data}
ln -sf usr/bin usr/lib usr/lib64 "$dir/image/"
(
  until docker version >/dev/null 2>&1; do sleep 0.1; done
  tar -C "$dir/image" -c . | docker import - empty >/dev/null
) &
exec dockerd --data-root "$dir/data" --exec-root /run/docker --log-level warn

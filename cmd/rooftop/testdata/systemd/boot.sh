#!/bin/bash
# boot.sh DIR boots systemd in namespaces of its own, over a copy of this machine's files that forgets what
# is written. Run it by unshare -m -n -p -f --kill-child --mount-proc. DIR is seen there by the same name.
set -eu
dir=$1 root=$1/root
mount --make-rprivate /
mkdir -p "$root"
mount -t tmpfs boot "$root"
mkdir "$root/up" "$root/work" "$root/all"
mount -t overlay boot -o "lowerdir=/,upperdir=$root/up,workdir=$root/work" "$root/all"
root=$root/all
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
# systemd empties these when it boots: they must not be the machine's own.
for d in run tmp var/tmp; do mount -t tmpfs boot "$root/$d"; done
mkdir -p "$root$dir/shared"
mount --bind "$dir/shared" "$root$dir/shared"
mount --bind /dev "$root/dev"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
mount -t tmpfs boot "$root/sys/fs/cgroup"
mkdir "$root/sys/fs/cgroup/systemd"
mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
rm -f "$root"/etc/systemd/system/*.wants/*
cp "$dir"/shared/*.service "$root/etc/systemd/system/"
ip link set lo up
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" \
  /lib/systemd/systemd --system --log-target=console --show-status=no --unit=basic.target

#!/bin/bash
# debian.sh DIR DEBIAN RELEASE installs the packages of RELEASE in a copy of the clean root that .ci/install-debian
# made, as a person would: install, read the manual, complete, see the demo, upgrade, remove. Run it by
# unshare -m -n -p -f --kill-child --mount-proc.
set -euo pipefail
dir=$1 debian=$2 release=$3
mount --make-rprivate /
ip link set lo up
mkdir "$dir"/{up,work,all}
mount -t overlay clean -o "lowerdir=$debian/root,upperdir=$dir/up,workdir=$dir/work" "$dir/all"
mkdir -p "$dir/all/release"
mount --bind "$release" "$dir/all/release"
mount -t proc proc "$dir/all/proc"
mount --bind /dev "$dir/all/dev"
exec chroot "$dir/all" env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin MANPAGER=cat bash -euo pipefail -c '
say() { echo "--- $SECONDS s: $*"; }
fail() { echo "FAILED: $*"; exit 1; }
works() { # works HOW: what a person does after an installation
  rooftop version
  for page in rooftop rooftop-tune rooftop-exporter; do man -w "$page" >/dev/null || fail "$1: there is no man page $page"; done
  man rooftop-demo 2>&1 | grep -q "^ *0      nothing is left to recommend" || fail "$1: the page of rooftop demo has no table of exit codes"
  bash -c ". /usr/share/bash-completion/bash_completion; _completion_loader rooftop; complete -p rooftop" || fail "$1: completion does not load"
  code=0
  timeout -s INT 6 rooftop demo --plain >/demo 2>&1 || code=$?
  [ "$code" = 124 ] || [ "$code" = 130 ] || fail "$1: the demo ended with $code: $(cat /demo)"
  grep -q "^SIMULATED" /demo || fail "$1: the demo said $(cat /demo)"
}
command -v rooftop && fail "the root is not clean"
arch=$(dpkg --print-architecture)
new=$(echo /release/rooftop_*_"$arch".deb)

say "an older package"
dpkg-deb -R "$new" /older
sed -i "s/^Version: .*/Version: 0.0.9/" /older/DEBIAN/control
echo gone >/older/usr/share/doc/rooftop/gone
dpkg-deb -b /older /older.deb >/dev/null
dpkg -i /older.deb
echo "ROOFTOP_URL=http://127.0.0.1:8000" >>/etc/rooftop/exporter.env

say "the upgrade"
dpkg -i "$new" </dev/null
[ ! -e /usr/share/doc/rooftop/gone ] || fail "the upgrade left a file of the older package"
grep -q "^ROOFTOP_URL=" /etc/rooftop/exporter.env || fail "the upgrade lost the settings"
[ "$(dpkg-query -W -f "\${Version}" rooftop)" != 0.0.9 ] || fail "the older version is still there"
[ -z "$(dpkg --verify rooftop | grep -v " c /etc/")" ] || fail "files differ from the package: $(dpkg --verify rooftop)"
works deb

say "removal"
dpkg -r rooftop
hash -r # bash remembers where it was
command -v rooftop && fail "the binary is still there"
[ -f /etc/rooftop/exporter.env ] || fail "a removal must leave the settings"
dpkg -P rooftop
left=$(find / -xdev \( -path /proc -o -path /release -o -path /older -o -path /root -o -path /tmp -o -path /var/cache/man \) -prune -o -iname "*rooftop*" -print)
[ -z "$left" ] || fail "left behind: $left"

say "from nothing to a diagnosis"
began=$(date +%s%N)
dpkg -i "$new" >/dev/null
echo "installed after $((($(date +%s%N) - began) / 1000000)) ms"
rooftop sim Qwen/Qwen3-8B --sim-gpu "H100 SXM" --max-num-seqs 16 --sim-startup-time 0 2>/dev/null &
until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.1; done
rooftop load --url http://127.0.0.1:8000 --clients 64 --duration 60s >/dev/null 2>&1 &
sleep 2
code=0
rooftop diagnose --duration 10s >/diagnosis || code=$?
[ "$code" = 3 ] || fail "diagnose ended with $code: $(cat /diagnosis)"
grep -q "max-num-seqs 16 → " /diagnosis || fail "$(cat /diagnosis)"
echo "diagnosed after $((($(date +%s%N) - began) / 1000000)) ms, 2 s of load and 10 s of measuring included"
kill %1 %2
wait || :
dpkg -P rooftop >/dev/null

say "rpm"
rpm --initdb
rpm=$(echo /release/rooftop-*."$(uname -m)".rpm)
rpm -qlp "$rpm" | sort >/listed
rpm --force-debian --nodeps -i "$rpm"
rpm -V --nodeps rooftop || fail "files differ from the rpm"
works rpm
while read -r file; do [ -e "$file" ] || fail "$file is not there"; done </listed
rpm --force-debian --nodeps -e rooftop
hash -r
command -v rooftop && fail "rpm left the binary"

say "archive"
mkdir /archive
tar --no-same-owner -xzf /release/rooftop_*_linux_"$arch".tar.gz -C /archive
"$(echo /archive/*/rooftop)" version
say "done"
'

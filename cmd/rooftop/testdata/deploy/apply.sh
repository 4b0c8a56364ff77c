#!/bin/sh
# Makes one change for rooftop: writes it into the file that holds the server's
# flags, one a line, and restarts the server.
#
#   FLAGS    that file: --max-num-seqs=16
#   RESTART  what restarts the server with the flags of the file
#
# rooftop calls it with ROOFTOP_CHANGES, a JSON array of {"flag", "from", "to"}
# that lead from what runs now to what is to run, the way back among them. Exit code
# 0: restarted, or about to be; 64: nothing was touched; any other: it is called again to undo it.
set -eu

flags=${FLAGS:?the file with the flags of the server}
cp -p "$flags" "$flags.new" || exit 64

printf '%s\n' "$ROOFTOP_CHANGES" | tr '{' '\n' |
	sed -n 's/.*"flag":"\([^"]*\)","from":"[^"]*","to":"\([^"]*\)".*/\1 \2/p' |
	while read -r flag to; do
		umask 077 # the file may hold a key, and keeps its own mode
		name=${flag#--}
		grep -v -e "^--$name\$" -e "^--$name=" -e "^--no-$name\$" "$flags.new" >"$flags.next" || true
		case $to in
		'') ;; # left out: the server's default
		on) echo "--$name" >>"$flags.next" ;;
		off) echo "--no-$name" >>"$flags.next" ;;
		*) echo "--$name=$to" >>"$flags.next" ;;
		esac
		cat "$flags.next" >"$flags.new"
		rm "$flags.next"
	done

mv "$flags.new" "$flags"
eval "${RESTART:-systemctl restart vllm}"

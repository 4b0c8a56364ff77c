package binary

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// mapping is one file that a process has mapped.
type mapping struct {
	path    string // as the process calls it
	deleted bool   // no longer under that name
	identity
	ranges []addresses // of which the first is in the order of addresses
	code   bool        // some of it may be executed
	bytes  uint64      // mapped of it in all
}

// identity is what tells a file from all others: its device as a list of mappings has
// it ("fe:00"), and its number there, 0 unknown.
type identity struct {
	device string
	inode  uint64
}

// addresses are a range of addresses as /proc/PID/map_files calls it.
type addresses struct {
	name string // "7f0c00000000-7f0c00001000"
	code bool
}

// Limits of a process's list of mappings. The kernel allows 65,530 mappings
// (vm.max_map_count); servers raise that.
const (
	maxMapLine  = 1 << 13 // PATH_MAX and what comes before it
	maxMappings = 1 << 20
)

// deletedSuffix is what the kernel writes after the path of a file that has no name any
// more.
const deletedSuffix = " (deleted)"

// readMaps reads /proc/PID/maps: the files that are mapped, each once, in the order of
// their addresses. Lines that cannot be read are left out.
func readMaps(r io.Reader) ([]mapping, error) {
	var files []mapping
	index := map[string]int{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMapLine)
	for n := 0; lines.Scan() && n < maxMappings; n++ {
		one, ok := readMapping(lines.Text())
		if !ok {
			continue
		}
		key := one.device + " " + strconv.FormatUint(one.inode, 10) + one.path
		i, had := index[key]
		if !had {
			i = len(files)
			index[key] = i
			files = append(files, mapping{path: one.path, deleted: one.deleted, identity: one.identity})
		}
		f := &files[i]
		f.ranges = append(f.ranges, one.ranges...)
		f.code = f.code || one.code
		f.bytes += one.bytes
	}
	return files, lines.Err()
}

// readMapping reads a line of a list of mappings (proc(5)); mappings that are of no file
// are none.
func readMapping(line string) (mapping, bool) {
	fields := [5]string{}
	rest := line
	for i := range fields {
		fields[i], rest, _ = strings.Cut(strings.TrimLeft(rest, " "), " ")
	}
	path := strings.TrimLeft(rest, " ")
	from, to, ok := strings.Cut(fields[0], "-")
	if !ok || !strings.HasPrefix(path, "/") {
		return mapping{}, false
	}
	begin, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	inode, err3 := strconv.ParseUint(fields[4], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || end < begin {
		return mapping{}, false
	}
	path, deleted := strings.CutSuffix(path, deletedSuffix)
	code := strings.Contains(fields[1], "x")
	return mapping{
		path: strings.ReplaceAll(path, `\012`, "\n"), deleted: deleted, identity: identity{fields[3], inode}, code: code, bytes: end - begin,
		ranges: []addresses{{fields[0], code}},
	}, true
}

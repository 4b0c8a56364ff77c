package binary

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mapping is one file that a process has mapped.
type mapping struct {
	path    string // the process's path of the file
	deleted bool   // the path no longer exists
	identity
	ranges []addresses // in the order of addresses
	code   bool        // part of it is executable
	bytes  uint64      // total size of its mappings
}

// identity identifies a file: its device as in a list of mappings ("fe:00"), and its inode, 0
// if unknown.
type identity struct {
	device string
	inode  uint64
}

// addresses is a range of addresses, named as in /proc/PID/map_files.
type addresses struct {
	name string // "7f0c00000000-7f0c00001000"
	code bool
}

// Limits of a process's list of mappings. The kernel allows 65,530 mappings
// (vm.max_map_count); servers raise that.
const (
	maxMapLine  = 1 << 13 // PATH_MAX and the columns before it
	maxMappings = 1 << 20
)

// deletedSuffix is what the kernel appends to the path of a deleted file.
const deletedSuffix = " (deleted)"

// Mapping is a range of addresses at which a process has mapped a file.
type Mapping struct {
	Path               string // the process's path of the file
	Deleted            bool   // the path no longer exists
	Code               bool   // it is executable
	Begin, End, Offset uint64 // addresses, and the offset of Begin in the file
	name               string // as in /proc/PID/map_files: "7f0c00000000-7f0c00001000"
	identity
}

// Mappings returns the ranges of mapped files of a process, in the order of addresses.
func Mappings(pid int) ([]Mapping, error) {
	f, err := os.Open(filepath.Join(procRoot, strconv.Itoa(pid), "maps"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readMappings(f)
}

// readMappings parses /proc/PID/maps. Invalid lines are left out.
func readMappings(r io.Reader) ([]Mapping, error) {
	var list []Mapping
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMapLine)
	for n := 0; lines.Scan() && n < maxMappings; n++ {
		if m, ok := readMapping(lines.Text()); ok {
			list = append(list, m)
		}
	}
	return list, lines.Err()
}

// readMaps parses /proc/PID/maps into the mapped files, each once, in the order of their
// addresses.
func readMaps(r io.Reader) ([]mapping, error) {
	list, err := readMappings(r)
	var files []mapping
	index := map[string]int{}
	for _, one := range list {
		key := one.device + " " + strconv.FormatUint(one.inode, 10) + one.Path
		i, had := index[key]
		if !had {
			i = len(files)
			index[key] = i
			files = append(files, mapping{path: one.Path, deleted: one.Deleted, identity: one.identity})
		}
		f := &files[i]
		f.ranges = append(f.ranges, addresses{one.name, one.Code})
		f.code = f.code || one.Code
		f.bytes += one.End - one.Begin
	}
	return files, err
}

// readMapping parses a line of a list of mappings (proc(5)), and reports whether it is of a
// file.
func readMapping(line string) (Mapping, bool) {
	fields := [5]string{}
	rest := line
	for i := range fields {
		fields[i], rest, _ = strings.Cut(strings.TrimLeft(rest, " "), " ")
	}
	path := strings.TrimLeft(rest, " ")
	from, to, ok := strings.Cut(fields[0], "-")
	if !ok || !strings.HasPrefix(path, "/") {
		return Mapping{}, false
	}
	begin, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	offset, err3 := strconv.ParseUint(fields[2], 16, 64)
	inode, err4 := strconv.ParseUint(fields[4], 10, 64)
	if errors.Join(err1, err2, err3, err4) != nil || end < begin {
		return Mapping{}, false
	}
	path, deleted := strings.CutSuffix(path, deletedSuffix)
	return Mapping{
		Path: strings.ReplaceAll(path, `\012`, "\n"), Deleted: deleted, Code: strings.Contains(fields[1], "x"),
		Begin: begin, End: end, Offset: offset, name: fields[0], identity: identity{fields[3], inode},
	}, true
}

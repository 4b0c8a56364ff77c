package binary

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Limits of what is read of a file, whose headers may claim any size.
const (
	maxTableBytes = 1 << 28 // of a symbol, string or relocation section; Chromium's .strtab has 60 MB
	maxCodeBytes  = 1 << 16 // of one function
	maxStringSize = 256     // GGML's names are shorter than 64
	maxNoteBytes  = 1 << 12
)

// symbol is one function or object of a file.
type symbol struct {
	name    string
	address uint64
	size    uint64
	object  bool // data, not a function
	local   bool
}

// relocation is a pointer that the dynamic linker fills in.
type relocation struct{ at, to uint64 }

// object is an ELF file that is open for reading.
type object struct {
	elf         *elf.File
	arch        string // GOARCH
	buildID     string
	symbols     map[string]symbol
	relocations []relocation // sorted by at; read with the first pointer
	related     bool
	tables      []symbolTable // exported symbols first
}

// symbolTable is a table of symbols as in the file.
type symbolTable struct{ entries, names []byte }

// errNotELF means that a file is not a supported object.
var errNotELF = errors.New("not a 64-bit little-endian ELF file")

// readObject reads the headers of an ELF file and the symbols of GGML and llama.cpp. The reader
// must stay open as long as the object is used.
func readObject(r io.ReaderAt) (*object, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotELF, err)
	}
	if f.Class != elf.ELFCLASS64 || f.ByteOrder != binary.LittleEndian {
		return nil, errNotELF
	}
	o := &object{elf: f, symbols: map[string]symbol{}}
	switch f.Machine {
	case elf.EM_X86_64:
		o.arch = "amd64"
	case elf.EM_AARCH64:
		o.arch = "arm64"
	case elf.EM_RISCV:
		o.arch = "riscv64"
	default:
		o.arch = strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_"))
	}
	o.buildID = buildID(f)
	// Exported names take precedence over local ones.
	for _, kind := range []elf.SectionType{elf.SHT_DYNSYM, elf.SHT_SYMTAB} {
		if err := o.readSymbols(kind); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// sectionData reads a section, and fails if it is larger than a limit.
func sectionData(s *elf.Section, limit uint64) ([]byte, error) {
	if s.Type == elf.SHT_NOBITS || s.FileSize == 0 {
		return nil, nil
	}
	if s.Size > limit || s.FileSize > limit {
		return nil, fmt.Errorf("section %s has %d bytes, more than the %d that are read", s.Name, s.Size, limit)
	}
	return s.Data()
}

// symbolBytes is the size of an entry of a 64-bit symbol table (System V ABI, Elf64_Sym).
const symbolBytes = 24

func (o *object) readSymbols(kind elf.SectionType) error {
	table := o.elf.SectionByType(kind)
	if table == nil || int(table.Link) >= len(o.elf.Sections) {
		return nil
	}
	data, err := sectionData(table, maxTableBytes)
	if err != nil {
		return err
	}
	names, err := sectionData(o.elf.Sections[table.Link], maxTableBytes)
	if err != nil {
		return err
	}
	o.tables = append(o.tables, symbolTable{data, names})
	for ; len(data) >= symbolBytes; data = data[symbolBytes:] {
		if !wanted(names, uint64(binary.LittleEndian.Uint32(data))) {
			continue
		}
		s, ok := readSymbol(data, names)
		if had, twice := o.symbols[s.name]; ok && (!twice || had.local && !s.local) {
			o.symbols[s.name] = s
		}
	}
	return nil
}

// symbolAt returns the function that begins at an address.
func (o *object) symbolAt(address uint64) (symbol, bool) {
	for _, t := range o.tables {
		for data := t.entries; len(data) >= symbolBytes; data = data[symbolBytes:] {
			if binary.LittleEndian.Uint64(data[8:]) != address {
				continue
			}
			if s, ok := readSymbol(data, t.names); ok && !s.object && s.size > 0 {
				return s, true
			}
		}
	}
	return symbol{}, false
}

// readSymbol parses an entry of a symbol table, and reports whether it is a function or data of
// this file.
func readSymbol(entry, names []byte) (symbol, bool) {
	info, section := entry[4], binary.LittleEndian.Uint16(entry[6:])
	kind := elf.ST_TYPE(info)
	if elf.SectionIndex(section) == elf.SHN_UNDEF || kind != elf.STT_FUNC && kind != elf.STT_OBJECT && kind != elf.STT_GNU_IFUNC {
		return symbol{}, false
	}
	return symbol{
		name:    cString(names, uint64(binary.LittleEndian.Uint32(entry))),
		address: binary.LittleEndian.Uint64(entry[8:]),
		size:    binary.LittleEndian.Uint64(entry[16:]),
		object:  kind == elf.STT_OBJECT,
		local:   elf.ST_BIND(info) == elf.STB_LOCAL,
	}, true
}

// wantedPrefixes are the prefixes of C names of GGML and llama.cpp, and the name of the table
// of formats.
var wantedPrefixes = [...]string{"ggml_", "llama_", "GGML_", "type_traits"}

// wanted reports whether the name at an offset is needed. Files have up to a million others.
func wanted(names []byte, at uint64) bool {
	if at >= uint64(len(names)) {
		return false
	}
	for _, p := range wantedPrefixes {
		if rest := names[at:]; len(rest) > len(p) && string(rest[:len(p)]) == p {
			return true
		}
	}
	return false
}

// cString returns the NUL-terminated string at an offset, "" if there is none.
func cString(b []byte, at uint64) string {
	if at >= uint64(len(b)) {
		return ""
	}
	b = b[at:]
	b = b[:min(len(b), maxStringSize)]
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return ""
}

// function returns the function with the given name.
func (o *object) function(name string) (symbol, bool) {
	s, ok := o.symbols[name]
	return s, ok && !s.object && s.address != 0
}

// read copies the bytes of the file at an address; fewer than size at the end of a segment, nil
// if there are none.
func (o *object) read(address, size uint64) []byte {
	for _, p := range o.elf.Progs {
		if p.Type != elf.PT_LOAD || address < p.Vaddr || address-p.Vaddr >= p.Filesz {
			continue
		}
		at := address - p.Vaddr
		b := make([]byte, min(size, p.Filesz-at))
		n, err := p.ReadAt(b, int64(min(at, math.MaxInt64)))
		if n == 0 && err != nil {
			return nil
		}
		return b[:n]
	}
	return nil
}

// fileOffset returns the offset in the file of an address.
func (o *object) fileOffset(address uint64) (uint64, bool) {
	for _, p := range o.elf.Progs {
		if p.Type == elf.PT_LOAD && address >= p.Vaddr && address-p.Vaddr < p.Filesz {
			return address - p.Vaddr + p.Off, true
		}
	}
	return 0, false
}

// code returns the machine code of a function, at most maxCodeBytes.
func (o *object) code(s symbol) []byte {
	return o.read(s.address, min(s.size, maxCodeBytes))
}

// text returns the string at an address.
func (o *object) text(address uint64) string {
	return cString(o.read(address, maxStringSize), 0)
}

// word returns the 8-byte number at an address, and whether the file contains it.
func (o *object) word(address uint64) (uint64, bool) {
	b := o.read(address, 8)
	if len(b) < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// pointer returns the address that the word at an address points to once it is loaded: that of
// its relocation, or else the bytes of the file. 0 is none.
func (o *object) pointer(address uint64) (to uint64, relocated bool) {
	if !o.related {
		o.related = true
		o.readRelocations()
	}
	i, found := slices.BinarySearchFunc(o.relocations, address, func(r relocation, a uint64) int { return cmp.Compare(r.at, a) })
	if found {
		return o.relocations[i].to, true
	}
	to, _ = o.word(address)
	return to, false
}

// The type of sections of relocations with addends, and the size of an entry of 64 bits
// (elf(5)).
const (
	sectionRela = elf.SectionType(4)
	relaBytes   = 24
)

// readRelocations reads the relocations with a known target. A section that cannot be read
// leaves its pointers unknown.
func (o *object) readRelocations() {
	for _, s := range o.elf.Sections {
		if s.Type != sectionRela && s.Type != sectionRelr {
			continue
		}
		data, err := sectionData(s, maxTableBytes)
		if err != nil {
			continue
		}
		switch s.Type {
		case sectionRela:
			o.addRela(data)
		case sectionRelr:
			o.addRelr(data)
		}
	}
	slices.SortStableFunc(o.relocations, func(a, b relocation) int { return cmp.Compare(a.at, b.at) })
}

func (o *object) addRela(data []byte) {
	for ; len(data) >= relaBytes; data = data[relaBytes:] {
		info, addend := binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data[16:])
		switch relocationKind(o.arch, uint32(info)) { //nolint:gosec // the low half is the type (ELF64_R_TYPE)
		case relative:
			o.relocations = append(o.relocations, relocation{binary.LittleEndian.Uint64(data), addend})
		case symbolic:
			if to := o.symbolValue(info >> 32); to != 0 {
				o.relocations = append(o.relocations, relocation{binary.LittleEndian.Uint64(data), to + addend})
			}
		}
	}
}

// How a relocation makes its pointer.
const (
	otherwise = iota
	relative  // from its addend
	symbolic  // from an exported symbol and its addend
)

func relocationKind(arch string, kind uint32) int {
	switch {
	case arch == "amd64" && elf.R_X86_64(kind) == elf.R_X86_64_RELATIVE, arch == "arm64" && elf.R_AARCH64(kind) == elf.R_AARCH64_RELATIVE:
		return relative
	case arch == "amd64":
		switch elf.R_X86_64(kind) {
		case elf.R_X86_64_64, elf.R_X86_64_GLOB_DAT, elf.R_X86_64_JMP_SLOT:
			return symbolic
		}
	case arch == "arm64":
		switch elf.R_AARCH64(kind) {
		case elf.R_AARCH64_ABS64, elf.R_AARCH64_GLOB_DAT, elf.R_AARCH64_JUMP_SLOT:
			return symbolic
		}
	}
	return otherwise
}

// symbolValue returns the address of an exported symbol by its index, 0 if the file does not
// define it.
func (o *object) symbolValue(index uint64) uint64 {
	if len(o.tables) == 0 || index >= uint64(len(o.tables[0].entries)/symbolBytes) {
		return 0
	}
	return binary.LittleEndian.Uint64(o.tables[0].entries[index*symbolBytes+8:])
}

// stubBytes is the size of a stub of the procedure linkage table.
const stubBytes = 16

// resolve follows a stub of the procedure linkage table to the function of this file that it
// leads to. Any other address is returned unchanged.
func (o *object) resolve(address uint64) uint64 {
	cpu := processorOf(o.arch)
	if cpu == nil {
		return address
	}
	slot, ok := cpu.stub(address, o.read(address, stubBytes))
	if !ok {
		return address
	}
	if to, moved := o.pointer(slot); moved {
		return to
	}
	return address
}

// sectionRelr is SHT_RELR, packed relative relocations: an address, then bitmaps of the
// 63 words after it (generic ABI, proposal of 2018; glibc 2.36 and later).
const (
	sectionRelr = elf.SectionType(19)
	maxRelr     = 1 << 22
)

func (o *object) addRelr(data []byte) {
	next := uint64(0)
	for ; len(data) >= 8 && len(o.relocations) < maxRelr; data = data[8:] {
		entry := binary.LittleEndian.Uint64(data)
		if entry&1 == 0 {
			o.addPacked(entry)
			next = entry + 8
			continue
		}
		for i := range uint64(63) {
			if entry>>(i+1)&1 == 1 {
				o.addPacked(next + 8*i)
			}
		}
		next += 63 * 8
	}
}

// addPacked adds a relocation whose addend is in place.
func (o *object) addPacked(at uint64) {
	if to, ok := o.word(at); ok {
		o.relocations = append(o.relocations, relocation{at, to})
	}
}

// noteBuildID is NT_GNU_BUILD_ID.
const noteBuildID = 3

// buildID returns the linker's identifier of a file, in hexadecimal, "" if it has none.
func buildID(f *elf.File) string {
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOTE {
			continue
		}
		data, err := sectionData(s, maxNoteBytes)
		if err != nil {
			continue
		}
		if id := noteID(data); id != "" {
			return id
		}
	}
	return ""
}

func noteID(data []byte) string {
	for len(data) >= 12 {
		nameSize, size, kind := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:]), binary.LittleEndian.Uint32(data[8:])
		if nameSize > maxNoteBytes || size > maxNoteBytes {
			return ""
		}
		name, end := 12+align4(nameSize), 12+align4(nameSize)+align4(size)
		if uint64(len(data)) < uint64(name+size) {
			return ""
		}
		if kind == noteBuildID && strings.HasPrefix(string(data[12:name]), "GNU\x00") {
			return hex.EncodeToString(data[name : name+size])
		}
		data = data[min(int(end), len(data)):]
	}
	return ""
}

func align4(n uint32) uint32 { return (n + 3) &^ 3 }

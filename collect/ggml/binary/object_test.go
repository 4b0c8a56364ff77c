package binary

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzReadObject reads arbitrary files in every way in which a runtime is read.
func FuzzReadObject(f *testing.F) {
	f.Add(tinyObject(f, 3))
	f.Add([]byte("\x7fELF"))
	if out := filepath.Join(f.TempDir(), "fake.so"); exec.Command("gcc", "-Os", "-s", "-shared", "-fPIC", "-o", out, filepath.Join("testdata", "fake.c")).Run() == nil {
		if b, err := os.ReadFile(out); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		o, err := readObject(bytes.NewReader(b))
		if err != nil {
			return
		}
		l, _ := o.layout()
		_, _ = o.names()
		_, _, _ = places([]part{{&Image{Path: "/f", Role: roleProgram}, o}}, &l)
	})
}

// tinyObject returns an ELF file with a section of notes and a build ID of id bytes.
func tinyObject(t testing.TB, id int) []byte {
	t.Helper()
	var b bytes.Buffer
	note := binary.LittleEndian.AppendUint32(nil, 4)
	note = binary.LittleEndian.AppendUint32(note, uint32(id))
	note = binary.LittleEndian.AppendUint32(note, noteBuildID)
	note = append(note, "GNU\x00"...)
	note = append(note, bytes.Repeat([]byte{0xab}, (id+3)&^3)...)
	names := []byte("\x00.note\x00.shstrtab\x00")
	header := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: uint64(64 + len(note) + len(names)),
		Ehsize: 64, Shentsize: 64, Shnum: 3, Shstrndx: 2,
	}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_NOTE), Off: 64, Size: uint64(len(note))},
		{Name: 7, Type: uint32(elf.SHT_STRTAB), Off: uint64(64 + len(note)), Size: uint64(len(names))},
	}
	for _, part := range []any{header, note, names, sections} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestTheBuildIDIsThatOfTheLinker(t *testing.T) {
	o, err := readObject(bytes.NewReader(tinyObject(t, 5)))
	if err != nil || o.buildID != "ababababab" || o.arch != "amd64" {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestFilesOfOtherKindsAreRefused(t *testing.T) {
	for name, change := range map[string]func([]byte){
		"32 bits":    func(b []byte) { b[4] = 1 },
		"big-endian": func(b []byte) { b[5] = 2 },
		"no ELF":     func(b []byte) { b[0] = 0 },
	} {
		b := tinyObject(t, 5)
		change(b)
		if _, err := readObject(bytes.NewReader(b)); !errors.Is(err, errNotELF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file may claim any size: nothing is allocated before the bytes are known to exist.
func TestSizesThatCannotBeAreRefused(t *testing.T) {
	b := tinyObject(t, 5)
	for _, size := range []uint64{1 << 20, 1 << 40, 1<<63 - 1, 1<<64 - 1} {
		sections := len(b) - 3*64
		binary.LittleEndian.PutUint64(b[sections+64+32:], size)
		o, err := readObject(bytes.NewReader(b))
		if err == nil && o.buildID != "" {
			t.Errorf("a note of %d bytes was read: %q", size, o.buildID)
		}
	}
}

func TestARuntimeOfAnotherArchitectureIsNamed(t *testing.T) {
	path := compile(t, "libggml.so", "-O2", "-shared", "-fPIC")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint16(b[18:], uint16(elf.EM_RISCV))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := FromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Gaps) != 1 || !strings.Contains(r.Gaps[0].Why, "riscv") || len(r.Places) != 0 {
		t.Errorf("%+v, %+v", r.Gaps, *r.Images[0])
	}
}

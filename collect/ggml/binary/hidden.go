package binary

import (
	"bytes"
	"debug/elf"
	"os"
	"strings"
)

// assertion begins the text with which GGML's checks end a program (ggml.h, GGML_ASSERT),
// in every version.
var assertion = []byte("GGML_ASSERT")

// maxConstants is the most that is read of a file's constants.
const maxConstants = 64 << 20

// inside says whether a file has GGML in it, by its constants: where it was linked statically,
// with hidden functions, and stripped, nothing else tells.
func inside(s source) bool {
	if info, err := os.Stat(s.open); err != nil || !info.Mode().IsRegular() {
		return false // opening a device does something
	}
	f, err := elf.Open(s.open)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	for _, section := range f.Sections {
		if !strings.HasPrefix(section.Name, ".rodata") {
			continue
		}
		if text, err := sectionData(section, maxConstants); err == nil && bytes.Contains(text, assertion) {
			return true
		}
	}
	return false
}

// hiddenError says that GGML is in a file which shows none of its functions.
type hiddenError struct{ path string }

func (e *hiddenError) Error() string {
	return "GGML is inside " + e.path + ", which shows none of its functions: they were linked into it as hidden ones, and it is stripped, so that nothing tells where they are; " +
		"use a build that is not stripped, or one with GGML's shared libraries (libggml-cpu.so)"
}

// Unwrap is [ErrNoRuntime]: no function of one was found.
func (e *hiddenError) Unwrap() error { return ErrNoRuntime }

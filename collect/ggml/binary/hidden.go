package binary

import (
	"bytes"
	"debug/elf"
	"strings"
)

// assertion is the start of the message with which GGML's checks end a program (ggml.h,
// GGML_ASSERT), in every version.
var assertion = []byte("GGML_ASSERT")

// maxConstants is the largest size of a section of constants that is read.
const maxConstants = 64 << 20

// containsGGML reports whether a file contains GGML, by its constants: nothing else shows it if
// GGML was linked statically, with hidden functions, and stripped.
func containsGGML(s source) bool {
	file, err := openRegular(s.open)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	f, err := elf.NewFile(file)
	if err != nil {
		return false
	}
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

// hiddenError means that a file contains GGML without showing any of its functions.
type hiddenError struct{ path string }

func (e *hiddenError) Error() string {
	return "GGML is inside " + e.path + ", which shows none of its functions: they were linked as hidden symbols and the file is stripped, so their addresses are unknown; " +
		"use a build that is not stripped, or one with GGML's shared libraries (libggml-cpu.so)"
}

// Unwrap returns [ErrNoRuntime], because no function was found.
func (e *hiddenError) Unwrap() error { return ErrNoRuntime }

package binary

import (
	"bufio"
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// disassemblies caches the output of objdump, by path.
var disassemblies = map[string]map[uint64]bool{}

// disassembly returns the addresses of instructions by objdump. Without symbols it starts at
// the section's begin, which is code too.
func (c toolchain) disassembly(t *testing.T, path string) map[uint64]bool {
	t.Helper()
	if had, ok := disassemblies[path]; ok {
		return had
	}
	out, err := exec.Command(c.prefix+"objdump", "-d", "-j", ".text", "--no-show-raw-insn", path).Output()
	if err != nil {
		t.Skipf("NOT CHECKED: that probes sit on instructions (objdump: %v)", err)
	}
	found := map[uint64]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		text, _, ok := strings.Cut(lines.Text(), ":")
		if address, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64); ok && err == nil {
			found[address] = true
		}
	}
	disassemblies[path] = found
	return found
}

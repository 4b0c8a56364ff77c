package binary

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"strings"
	"testing"
	"time"
)

// codeAt returns an object with one function.
func codeAt(t *testing.T, arch, code string) (*object, symbol) {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(code, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	const address = 0x1000
	size := uint64(len(b))
	s := symbol{name: "f", address: address, size: size}
	return &object{
		elf: &elf.File{Progs: []*elf.Prog{{
			ProgHeader: elf.ProgHeader{Type: elf.PT_LOAD, Vaddr: address, Off: 0x200, Filesz: size, Memsz: size},
			ReaderAt:   bytes.NewReader(b),
		}}},
		arch: arch, symbols: map[string]symbol{"f": s}, related: true,
	}, s
}

const endbr = "f30f1efa"

func TestX86SitesKeepWhatTheProbeNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		code   string
		need   need
		offset uint64
		cost   time.Duration
		pushed int
	}{
		"a push at the entry":                        {"4155 4989fd c3", need{arguments: 2}, 0, costEmulated, 0},
		"a push after endbr64":                       {endbr + "4155 4989fd c3", need{arguments: 2}, 4, costEmulated, 0},
		"je after a compare":                         {endbr + "8b4768 6683f801 7401 90 c3", need{}, 11, costEmulated, 0},
		"a nop of one byte":                          {endbr + "90 c3", need{arguments: 2}, 4, costNop, 0},
		"a call while arguments are intact":          {endbr + "4883ec08 e800000000 c3", need{arguments: 2}, 8, costEmulated, 0},
		"an argument is overwritten first":           {endbr + "4889f7 55 c3", need{arguments: 2}, 0, costStepped, 0},
		"an argument that is not needed is written":  {endbr + "31ff 55 c3", need{}, 6, costEmulated, 0},
		"the second argument, where one is needed":   {endbr + "31f6 55 c3", need{arguments: 1}, 6, costEmulated, 0},
		"the third argument, where three are needed": {endbr + "8b11 55 c3", need{arguments: 3}, 0, costStepped, 0},
		"a return within the walk":                   {endbr + "31c0 c3 55", need{}, 0, costStepped, 0},
		"an indirect jump":                           {endbr + "ff6768 55", need{arguments: 2}, 0, costStepped, 0},
		"a nop5 at the entry is not taken":           {"0f1f440000 55 c3", need{arguments: 2}, 5, costEmulated, 0},
		"a nop5 in the middle is not taken":          {endbr + "31c0 0f1f440000 c3", need{arguments: 2}, 0, costStepped, 0},
		"a push of memory is stepped":                {endbr + "ff7748 55 c3", need{arguments: 2}, 7, costEmulated, 0},
		"a nop with an operand-size prefix":          {endbr + "6690 55 c3", need{arguments: 2}, 6, costEmulated, 0},
		"an aligned stack, arguments in registers":   {endbr + "4c8d542408 4883e4c0 41ff72f8 55 c3", need{arguments: 3}, 17, costEmulated, 0},
		"an aligned stack, a return probe":           {endbr + "4c8d542408 4883e4c0 41ff72f8 55 c3", need{ret: true}, 0, costStepped, 0},
		"room on the stack, then a return probe":     {endbr + "4883ec18 55 c3", need{ret: true}, 0, costStepped, 0},
		"a push of memory, then a return probe":      {endbr + "ff7748 55 c3", need{ret: true}, 0, costStepped, 0},
		"a push, a return probe":                     {endbr + "55 c3", need{ret: true}, 4, costEmulated, 0},
		"room on the stack, arguments on it":         {endbr + "4883ec18 7400 c3", need{arguments: 1, stack: true}, 8, costEmulated, 0x18},
		"Debian's llama_decode":                      {endbr + "4883ec18 488d742420 e800000000 c3", need{stack: true}, 13, costEmulated, 0x18},
		"an aligned stack, arguments on it":          {endbr + "4883e4c0 55 c3", need{arguments: 1, stack: true}, 0, costStepped, 0},
		"a division writes what it does not name":    {endbr + "48f7f1 55 c3", need{arguments: 3}, 0, costStepped, 0},
		"a copy of strings":                          {endbr + "f3a4 55 c3", need{arguments: 2}, 0, costStepped, 0},
		"an exchange":                                {endbr + "4887f8 55 c3", need{arguments: 2}, 0, costStepped, 0},
		"vector registers":                           {endbr + "c4e1f96ecf 55 c3", need{arguments: 2}, 9, costEmulated, 0},
		"a loop that comes back to the site":         {endbr + "85ff 7405 83ef01 ebf7 c3", need{}, 0, costStepped, 0},
		"a loop that comes back behind the site":     {endbr + "85ff 7407 83ef01 ebfb 9090 c3", need{}, 6, costEmulated, 0},
		"a loop that counts in rcx":                  {endbr + "e302 55 c3", need{}, 0, costStepped, 0},
		"bytes that are no instruction":              {"0f04", need{}, 0, costStepped, 0},
		"nothing at all":                             {"", need{}, 0, costStepped, 0},
		"nothing cheap in reach":                     {strings.Repeat("31c0", 20) + "55", need{}, 0, costStepped, 0},
	} {
		o, s := codeAt(t, "amd64", c.code)
		got := sites{o, x86{}}.spot(s, c.need)
		if got.offset != c.offset || got.cost != c.cost || got.cheap != (c.cost != costStepped) || c.need.stack && got.pushed != c.pushed {
			t.Errorf("%s: +%d %q cheap=%v %v pushed=%d, want +%d %v pushed=%d",
				name, got.offset, got.instruction, got.cheap, got.cost, got.pushed, c.offset, c.cost, c.pushed)
		}
	}
}

// The ends of calls in four builds of llama.cpp.
func TestX86CallsEndAfterTheirInnerCall(t *testing.T) {
	for name, c := range map[string]struct {
		code   string
		offset uint64
		cheap  bool
		ok     bool
	}{
		"node-llama-cpp 3.22.1":             {endbr + "4154 488d742410 e8201cebff 4189c4 83f801 761c 89c1 4489e0 415c c3", 22, true, true},
		"llama.node, clang":                 {"53 488d742410 e8000000 00 89c3 83f802 7202 89d8 5b c3", 16, true, true},
		"without anything to say":           {"53 e800000000 89c3 5b c3", 6, false, true},
		"a jump before the call":            {"7400 e800000000 c3", 0, false, false},
		"no call":                           {"31c0 c3", 0, false, false},
		"it ends by jumping elsewhere":      {"e900001000", 0, false, false},
		"a jump comes back behind the call": {"53 e800000000 89c3 85c0 7404 90 90 ebf8 c3", 6, false, true},
	} {
		o, s := codeAt(t, "amd64", c.code)
		got, ok := sites{o, x86{}}.after(s)
		if ok != c.ok || ok && (got.offset != c.offset || got.cheap != c.cheap) {
			t.Errorf("%s: +%d %q cheap=%v %v, want +%d cheap=%v %v", name, got.offset, got.instruction, got.cheap, ok, c.offset, c.cheap, c.ok)
		}
	}
}

func TestX86ReturnsAreAllFound(t *testing.T) {
	o, s := codeAt(t, "amd64", "85f6 7408 83fe01 7409 31c0 c3 4889d6 c3 e9fc0f0000")
	at, tails, ok := sites{o, x86{}}.returns(s)
	if !ok || len(at) != 2 || at[0].offset != 11 || at[1].offset != 15 || len(tails) != 1 || tails[0] != 0x1015+0xffc {
		t.Errorf("%+v %x %v", at, tails, ok)
	}
	o, s = codeAt(t, "amd64", "7401 c3 ffe0")
	if _, _, ok := (sites{o, x86{}}).returns(s); ok {
		t.Error("a jump to a computed address was taken for no end")
	}
	o, s = codeAt(t, "amd64", "0f04 c3")
	if _, _, ok := (sites{o, x86{}}).returns(s); ok {
		t.Error("code that cannot be read was believed to be whole")
	}
}

func FuzzX86(f *testing.F) {
	f.Add([]byte{0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x55, 0xc3}, uint8(2), true)
	f.Add([]byte{0x48, 0x8b, 0x47, 0x10, 0x48, 0x0f, 0xaf, 0x47, 0x18, 0xc3}, uint8(0), false)
	f.Fuzz(func(t *testing.T, code []byte, arguments uint8, ret bool) {
		o, s := codeAt(t, "amd64", hex.EncodeToString(code))
		got := sites{o, x86{}}.spot(s, need{arguments: int(arguments % 8), ret: ret, stack: !ret})
		if got.offset > 0 && got.offset >= uint64(len(code)) {
			t.Errorf("a site at +%d of %d bytes", got.offset, len(code))
		}
		_, _ = sites{o, x86{}}.after(s)
		_, _, _ = sites{o, x86{}}.returns(s)
		for _, v := range o.follow("f").returns {
			if v.kind == number && v.a == 0 && v.size != 0 {
				t.Errorf("%+v", v)
			}
		}
	})
}

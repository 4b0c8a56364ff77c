package binary

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The error names the missing privilege when a process cannot be read, and not the privileges
// that are present.
func TestWhatIsNeededToLookAtAProcess(t *testing.T) {
	const root, nobody, none, all = "Uid:\t0\t0\t0\t0\n", "Uid:\t0\t65534\t65534\t65534\n", "CapEff:\t0000000000000000\n", "CapEff:\t000001fffeffffff\n"
	for name, c := range map[string]struct {
		status   string
		has, not []string
	}{
		"root":              {root + all, []string{"although this user has CAP_SYS_PTRACE", "not of this container", "SELinux", "on the host"}, []string{"run as root"}},
		"a user who has it": {nobody + "CapEff:\t0000000000080000\n", []string{"although this user has CAP_SYS_PTRACE"}, []string{"run as root"}},
		"root of a container": {root + "CapEff:\t00000000a80425fb\n", []string{"root has no CAP_SYS_PTRACE here", "CAP_BPF and CAP_PERFMON"},
			[]string{"run as root"}},
		"nobody":         {nobody + none, []string{"its own user or CAP_SYS_PTRACE", "CAP_BPF and CAP_PERFMON", "run as root"}, nil},
		"who is unknown": {"Uid:\tx\ty\n", []string{"its own user or CAP_SYS_PTRACE"}, nil},
	} {
		dir := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "self"), 0o700), os.WriteFile(filepath.Join(dir, "self", "status"), []byte("Name:\trooftop\n"+c.status), 0o600)); err != nil {
			t.Fatal(err)
		}
		said := explain(dir, fs.ErrPermission).Error()
		for _, want := range append(c.has, "its mapped files may not be read", "'rooftop doctor'") {
			if !strings.Contains(said, want) {
				t.Errorf("%s: said %q, want %q", name, said, want)
			}
		}
		for _, wrong := range c.not {
			if strings.Contains(said, wrong) {
				t.Errorf("%s: said %q, and %q is nonsense", name, said, wrong)
			}
		}
	}
	if said := explain(t.TempDir(), fs.ErrPermission).Error(); !strings.Contains(said, "its own user or CAP_SYS_PTRACE") {
		t.Errorf("without a status it said %q", said)
	}
}

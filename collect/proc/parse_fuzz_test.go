package proc

import (
	"bytes"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
)

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("8233 (cat) R 8211 8211 5062 0 -1 4194304 102 0 7 0 1 2 3 4 20 0 1 0 7985498 3133440 381 18446744073709551615 1 1 0 0\n"))
	f.Add([]byte("1 (a) b (c)) S 0 0 0 0 -1 1 2 3 4 5 6 7 8 9 10 -11 12 0 13\n"))
	f.Add([]byte("1 (x) Z 99999999999999999999999 0"))
	f.Add([]byte("9 (("))
	f.Fuzz(func(t *testing.T, b []byte) {
		line, ok := parseStat(b)
		if !ok {
			return
		}
		if line.cpu < 0 || line.reaped < 0 || line.ppid < 0 || line.threads < 0 {
			t.Errorf("negative: %+v", line)
		}
		if !bytes.Contains(b, line.comm) {
			t.Errorf("name %q is not in the line", line.comm)
		}
	})
}

// FuzzParseField reads what cpu.stat holds.
func FuzzParseField(f *testing.F) {
	f.Add([]byte("nr_periods 12\nnr_throttled 3\n"), "nr_throttled")
	f.Fuzz(func(t *testing.T, b []byte, key string) {
		n, ok := parseField(b, key+" ")
		if ok && !bytes.Contains(b, []byte(key+" ")) {
			t.Errorf("%d for a key that is not there", n)
		}
		// A line before it that has another key changes nothing.
		if again, ok2 := parseField(append([]byte("_"+key+" 77\n"), b...), key+" "); key != "" && (again != n || ok2 != ok) {
			t.Errorf("%d %v, and %d %v behind another line", n, ok, again, ok2)
		}
	})
}

// FuzzNumbers reads what statm holds.
func FuzzNumbers(f *testing.F) {
	for _, text := range []string{
		"765 430 403 5 0 123 0\n", "1 18446744073709551615", "-", "1138269 505189 3\n", "0 18446744073709551615 0", "12 4711 9 ", "-3 0 99999999999 x 4",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if pages, _ := parseStatm(b); pages < 0 || pages > 1<<40 {
			t.Errorf("%d pages", pages)
		}
	})
}

// FuzzCgroupFiles reads cpu.max and mountinfo, and looks for a group below a mount.
func FuzzCgroupFiles(f *testing.F) {
	f.Add([]byte("max 100000\n"), "/", "../..")
	f.Add([]byte("30 23 0:26 / /a rw - tmpfs - rw\n31 23 0:27 / /b rw - cgroup cgroup rw,cpu\n"), `/a\040b`, "a")
	f.Add([]byte("200000 100000\n"), "/docker/x", "docker/x")
	f.Fuzz(func(t *testing.T, b []byte, root, group string) {
		if cores, ok := parseMax(b); ok && cores <= 0 {
			t.Errorf("%v cores", cores)
		}
		parseMounts(b)
		mount := procfs.MountInfo{FSType: "cgroup", Root: root, MountPoint: t.TempDir(), SuperOptions: map[string]string{"cpu": ""}}
		if h := groupDir([]procfs.MountInfo{mount}, "cpu", "/"+group); h.dir != "" && !strings.HasPrefix(h.dir, mount.MountPoint) {
			t.Errorf("%+v is outside of its mount", h)
		}
	})
}

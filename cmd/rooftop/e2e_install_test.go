//go:build e2e && linux

package main_test

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Artifacts of a release as users get them: ROOFTOP_E2E_RELEASE is a folder filled by .ci/release, ROOFTOP_E2E_DEBIAN
// the output of .ci/install-debian, ROOFTOP_E2E_DOCKER that of .ci/install-docker.

// released returns the folder of the artifacts.
func released(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ROOFTOP_E2E_RELEASE")
	if dir == "" {
		t.Skip("NOT CHECKED: the artifacts of a release: ROOFTOP_E2E_RELEASE names none")
	}
	return dir
}

// artifact returns the single file that matches a pattern.
func artifact(t *testing.T, pattern string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(released(t), pattern))
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %q, %v", pattern, list, err)
	}
	return list[0]
}

func TestE2EInstall(t *testing.T) {
	release, debian := released(t), os.Getenv("ROOFTOP_E2E_DEBIAN")
	if debian == "" || os.Getuid() != 0 {
		t.Skip("NOT CHECKED: installation in a clean Debian: it needs root, and ROOFTOP_E2E_DEBIAN names no root")
	}
	out, err := exec.CommandContext(testContext(t), "unshare", "-m", "-n", "-p", "-f", "--kill-child", "--mount-proc",
		"bash", "testdata/install/debian.sh", t.TempDir(), debian, release).CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), " s: done\n") {
		t.Errorf("%v", err)
	}
}

// The image runs as any user, with a read-only file system.
func TestE2EImage(t *testing.T) {
	image := artifact(t, "rooftop_*_image_linux_"+runtime.GOARCH+".tar")
	if os.Getenv("ROOFTOP_E2E_DOCKER") == "" || os.Getuid() != 0 {
		t.Skip("NOT CHECKED: the container image: it needs root, and ROOFTOP_E2E_DOCKER names no Docker")
	}
	m := boot(t, "docker/boot.sh", "empty", nil, "docker", "image", "inspect", "empty")
	data, err := os.ReadFile(image)
	if err == nil {
		err = os.WriteFile(filepath.Join(m.dir, "shared", "image.tar"), data, 0o600)
	}
	must(t, err)
	run := func(want int, args ...string) string {
		t.Helper()
		out, err := m.command(append([]string{"docker"}, args...)...).CombinedOutput()
		code := 0
		if failed, ok := err.(*exec.ExitError); ok {
			code = failed.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != want {
			t.Errorf("docker %q: exit code %d, want %d: %s", args, code, want, out)
		}
		return string(out)
	}
	name := strings.TrimSpace(strings.TrimPrefix(run(0, "load", "--input", filepath.Join(m.dir, "shared", "image.tar")), "Loaded image:"))
	t.Logf("%s", run(0, "history", name))
	for _, user := range []string{"", "0", "12345:54321"} {
		args := []string{"run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"}
		if user != "" {
			args = append(args, "--user", user)
		}
		args = append(args, name)
		if out := run(0, append(args, "version")...); !strings.Contains(out, "linux/"+runtime.GOARCH) {
			t.Errorf("as %q: %s", user, out)
		}
		if out := run(0, append(args, "demo", "--list")...); !strings.Contains(out, "low-batch") {
			t.Errorf("as %q: %s", user, out)
		}
		run(5, append(args, "diagnose", "--url", "http://127.0.0.1:1", "--duration", "8s")...)
	}
}

// An SBOM names the modules that the binary says it has, and no others.
func TestE2EBillOfMaterials(t *testing.T) {
	for _, variant := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "linux_" + runtime.GOARCH + "_nvml"} {
		t.Run(variant, func(t *testing.T) {
			dir := t.TempDir()
			if out, err := exec.Command("tar", "-xzf", artifact(t, "rooftop_*_"+variant+".tar.gz"), "-C", dir, "--strip-components=1").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			info, err := buildinfo.ReadFile(filepath.Join(dir, "rooftop"))
			must(t, err)
			var want []string
			for _, m := range info.Deps {
				want = append(want, m.Path+"@"+m.Version)
			}
			var bill struct {
				Components []struct{ Name, Version string }
			}
			text := readFile(t, artifact(t, "rooftop_*_"+variant+".cdx.json"))
			must(t, json.Unmarshal(text, &bill))
			var got []string
			for _, c := range bill.Components {
				if c.Name != "std" {
					got = append(got, c.Name+"@"+c.Version)
				}
			}
			if len(want) < 20 {
				t.Errorf("the binary names %d modules", len(want))
			}
			if diff := cmp.Diff(want, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Errorf("(-go version -m, +SBOM):\n%s", diff)
			}
			for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "THIRD_PARTY_LICENSES", "man/rooftop.1", "completions/rooftop.bash"} {
				if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

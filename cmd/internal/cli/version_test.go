package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// A release, and the same version installed from a module, report the same version.
func TestVersionOfABuild(t *testing.T) {
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "e59b36c"}, {Key: "vcs.time", Value: "2026-11-27T01:00:00Z"}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		name, released, module string
		settings               []debug.BuildSetting
		want                   Build
	}{
		{name: "release", released: "0.1.0", module: "(devel)", settings: vcs[:2], want: Build{Version: "0.1.0", Commit: "e59b36c", Date: "2026-11-27T01:00:00Z"}},
		{name: "module", module: "v0.1.0", want: Build{Version: "0.1.0"}},
		{name: "checkout", module: "v0.0.0-20261127010000-e59b36c50000+dirty", settings: vcs, want: Build{
			Version: "0.0.0-20261127010000-e59b36c50000+dirty", Commit: "e59b36c", Date: "2026-11-27T01:00:00Z", Modified: true,
		}},
		{name: "without history", module: "(devel)", want: Build{Version: "devel"}},
		{name: "without build information", want: Build{Version: "devel"}},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: c.module}, Settings: c.settings}
		c.want.Go, c.want.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
		if got := buildOf(info, c.released); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

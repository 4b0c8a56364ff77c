package cli

import (
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// released is the version of a release, such as 0.1.0. .ci/release sets it when it links; it is "" in every
// other build.
var released string

// Build describes the source and the platform of this program.
type Build struct {
	// Version is that of the release or of the module. Between releases it is a pseudo-version, which names
	// the commit; "devel" if the checkout's history was not read, as in tests.
	Version string `json:"version"`
	Commit  string `json:"commit,omitzero"` // "" if unknown, as for a module from a proxy
	Date    string `json:"date,omitzero"`   // of the commit, in RFC 3339; "" if unknown
	// Modified is set if files of the checkout differed from the commit.
	Modified bool   `json:"modified"`
	Go       string `json:"go"`       // its release, such as go1.26.0
	Platform string `json:"platform"` // such as linux/amd64
}

// ThisBuild returns the build of this program.
var ThisBuild = sync.OnceValue(func() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info, released)
})

// Version returns the version of this build.
func Version() string { return ThisBuild().Version }

func buildOf(info *debug.BuildInfo, released string) Build {
	b := Build{Version: released, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Version == "" {
		b.Version = strings.TrimPrefix(info.Main.Version, "v")
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

package cli

import "runtime/debug"

// Version returns the module's version, or else the commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version, dirty := info.Main.Version, ""
	for _, s := range info.Settings {
		if s.Key == "vcs.modified" && s.Value == "true" {
			dirty = "-dirty"
		}
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") && len(s.Value) >= 12 {
			version = "devel-" + s.Value[:12]
		}
	}
	if version == "" || version == "(devel)" {
		return "devel"
	}
	return version + dirty
}

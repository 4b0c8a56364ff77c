package catalog

import (
	"cmp"
	"strconv"
	"strings"
)

// release is a minor release of vLLM: 0.11 for "0.11.2". The catalog does not distinguish patch
// releases.
type release struct{ major, minor int }

// parseRelease parses "0.11.0", "v0.11.1rc1", "0.32.0+cpu", and builds such as "b11669". It returns false for a development build
// without a tag ("0.1.dev123+g0abc", "dev").
func parseRelease(s string) (release, bool) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "v")
	if build, ok := strings.CutPrefix(s, "b"); ok { // a build of llama.cpp
		s = "0." + build
	}
	major, rest, _ := strings.Cut(s, ".")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	tail := ""
	if end >= 0 {
		rest, tail = rest[:end], rest[end:]
	}
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(rest)
	if err1 != nil || err2 != nil || a < 0 || a == 0 && b <= 1 && strings.Contains(tail, "dev") {
		return release{}, false
	}
	return release{a, b}, true
}

func (r release) compare(o release) int {
	return cmp.Or(cmp.Compare(r.major, o.major), cmp.Compare(r.minor, o.minor))
}
func (r release) String() string {
	if r.major == 0 && r.minor >= firstBuild {
		return "b" + strconv.Itoa(r.minor)
	}
	return strconv.Itoa(r.major) + "." + strconv.Itoa(r.minor)
}

// firstBuild is a number that no minor release of an engine reaches, and every build of llama.cpp exceeds.
const firstBuild = 1000

// UnmarshalText parses a release in the embedded files.
func (r *release) UnmarshalText(text []byte) error {
	v, ok := parseRelease(string(text))
	if !ok {
		return strconv.ErrSyntax
	}
	*r = v
	return nil
}

package launch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Redacted returns [Config.Argv] with every secret replaced: values of flags, variables and
// JSON keys whose names mention keys, tokens, secrets or passwords, the user part of URLs,
// and all other occurrences of these values.
func (c *Config) Redacted() []string {
	out := c.cmd.argv()
	hide := c.secrets()
	for i := range out {
		out[i] = hide.word(out[i])
	}
	c.cmd.redact(out, hide)
	return out
}

// String returns the redacted command line as one line for a POSIX shell.
func (c Config) String() string {
	if c.cmd == nil {
		return ""
	}
	quoted := c.Redacted()
	if c.typed {
		return quoted[c.cmd.childAt]
	}
	for i, arg := range quoted {
		quoted[i] = quoteRedacted(arg)
	}
	return strings.Join(quoted, " ")
}

// Format writes [Config.String] for every verb, so that no way of printing a
// Config shows a secret.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// MarshalJSON writes [Config.String].
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// redact replaces the words of out that are secret by their position. out is parallel to
// the command's words.
func (c *command) redact(out []string, hide hidden) {
	for i := 0; i < len(c.ws); i++ {
		if !isFlag(c.ws[i].text) {
			continue
		}
		name, value, inline := strings.Cut(c.ws[i].text, "=")
		if inline && !secretName(name, value) {
			continue
		}
		// --api-key takes several values.
		for i+1 < len(c.ws) && !isFlag(c.ws[i+1].text) && secretName(name, c.ws[i+1].text) {
			i++
			if c.child == nil || i != c.childAt {
				out[i] = Redacted
			}
		}
	}
	if c.child == nil {
		return
	}
	inner := c.child.argv()
	for i := range inner {
		inner[i] = hide.word(inner[i])
	}
	c.child.redact(inner, hide)
	var b strings.Builder
	b.WriteString(hide.in(c.child.before))
	for i, w := range c.child.ws {
		raw := w.raw
		if inner[i] != w.text {
			raw = quoteRedacted(inner[i])
		}
		b.WriteString(hide.in(w.gap) + hide.in(raw))
	}
	b.WriteString(hide.in(c.child.after))
	out[c.childAt] = b.String()
}

// quoteRedacted is like [Quote] but adds no quotes because of [Redacted].
func quoteRedacted(s string) string {
	const stand = "REDACTED"
	return strings.ReplaceAll(Quote(strings.ReplaceAll(s, Redacted, stand)), stand, Redacted)
}

// hidden are strings that must not be shown.
type hidden []string

// secrets returns the secret values of a configuration. It omits short ones, because
// replacing each "1" would make a text unreadable.
func (c *Config) secrets() hidden {
	var hs hidden
	add := func(v string) {
		if len(v) >= 6 {
			hs = append(hs, v)
		}
	}
	for name, v := range c.env {
		if secretVariable(name) {
			add(v)
		}
	}
	for _, it := range c.items {
		for _, v := range it.values {
			if secretName(strings.Join(append([]string{it.name}, it.path...), "."), v) {
				add(v)
			}
		}
	}
	// The longest first, so that a secret that contains another is replaced completely.
	slices.SortFunc(hs, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return hs
}

// assignable matches the name before an equals sign: a flag or a variable.
var assignable = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// word redacts one argument: the value after an equals sign according to its name, or the
// whole argument as a value.
func (hs hidden) word(s string) string {
	name, value, ok := strings.Cut(s, "=")
	if !ok || !assignable.MatchString(name) {
		return hs.in(s)
	}
	if variable, inner, ok := strings.Cut(value, "="); ok && secretVariable(variable) { // --env=NAME=value
		return name + "=" + variable + "=" + redactedUnlessEmpty(inner)
	}
	if secretName(name, value) || secretVariable(strings.TrimPrefix(name, "-e")) && !strings.HasPrefix(name, "--") {
		return name + "=" + redactedUnlessEmpty(value)
	}
	return name + "=" + hs.in(value)
}

func redactedUnlessEmpty(s string) string {
	if s == "" {
		return ""
	}
	return Redacted
}

// in returns s without the hidden values and without anything that looks like a secret.
func (hs hidden) in(s string) string {
	return hs.replace(hideInValue(s))
}

func (hs hidden) replace(s string) string {
	for _, v := range hs {
		s = strings.ReplaceAll(s, v, Redacted)
	}
	return s
}

// hideFlag returns the value of a flag for display, redacted if necessary.
func hideFlag(name, value string) string {
	if secretName(name, value) {
		return Redacted
	}
	return hideInValue(value)
}

var (
	userinfo   = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)(?:[^/\s"'@:]+:[^\s"'?]*|[^/\s"']+)@`) // a password may have / and @
	query      = regexp.MustCompile(`(?i)([?&](?:[^=&\s]*(?:key|token|secret|passw|credential|signature|sig)[^=&\s]*|(?:[^=&\s]*[_.-])?(?:auth|authorization|pass|pwd))=)[^&\s"']+`)
	assignment = regexp.MustCompile(`(?i)\b([a-z0-9_-]*(?:api[_-]?key|token|secret|passw(?:or)?d|credentials?|access[_-]?key)\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s;&|'"]+)`)
	header     = regexp.MustCompile(`(?i)\b((?:authorization|cookie)\s*:\s*)(?:[a-z]+\s+)?[^\s"']+`)
	bearer     = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{6,}`)
	shape      = regexp.MustCompile(`\b(hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{16,}|nvapi-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{16,})`)
)

// hideInValue replaces what looks like a secret within a value.
func hideInValue(s string) string {
	if trimmed := strings.TrimSpace(s); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if v, ok := decodeJSON(trimmed); ok {
			if v, redacted := redactJSON(v, ""); redacted {
				return hideShapes(encodeJSON(v))
			}
			return hideShapes(s)
		}
	}
	return hideInText(s)
}

func hideShapes(s string) string {
	s = userinfo.ReplaceAllString(s, "${1}"+Redacted+"@")
	s = query.ReplaceAllString(s, "${1}"+Redacted)
	s = header.ReplaceAllString(s, "${1}"+Redacted)
	s = bearer.ReplaceAllString(s, "${1} "+Redacted)
	return shape.ReplaceAllString(s, Redacted)
}

// hideInText is like hideInValue but for prose and scripts.
func hideInText(s string) string {
	s = hideShapes(s)
	return assignment.ReplaceAllStringFunc(s, func(m string) string {
		g := assignment.FindStringSubmatch(m)
		name := strings.TrimRight(g[1], " \t=:")
		if !secretName(strings.TrimLeft(name, "-"), g[2]) && !secretVariable(name) {
			return m
		}
		return g[1] + Redacted
	})
}

// redactJSON replaces the texts of secret keys, also in lists and objects, and reports whether there were any. under is
// the secret key, or the next one, that leads to v.
func redactJSON(v any, under string) (redacted any, changed bool) {
	one := false
	switch t := v.(type) {
	case string:
		if secretName(under, t) {
			return Redacted, true
		}
	case map[string]any:
		for key, e := range t {
			name := key
			if secretName(under, "text") {
				name = under
			}
			t[key], one = redactJSON(e, name)
			changed = changed || one
		}
	case []any:
		for i, e := range t {
			t[i], one = redactJSON(e, under)
			changed = changed || one
		}
	}
	return v, changed
}

var numeric = regexp.MustCompile(`^[-+]?[0-9._]+[kKmMgGtT]?$`)

// secretName reports whether a flag or key with a name and value holds a secret. Language
// models also count tokens, so a name with "token" is not secret if the value is a number
// or the name is about tokenizers, thresholds or IDs.
func secretName(name, value string) bool {
	for _, g := range grammars {
		if k := g.kindOf(g.canonical(name)); k == kindBool || k == kindTrue {
			return false
		}
	}
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	for i, part := range parts {
		switch {
		case strings.Contains(part, "secret"), strings.Contains(part, "passw"), strings.Contains(part, "passphrase"), strings.Contains(part, "credential"):
			return true
		case strings.HasSuffix(part, "key"), strings.HasSuffix(part, "keys"), strings.HasPrefix(part, "keyfile"):
			return true
		case strings.HasSuffix(part, "token"), strings.HasSuffix(part, "tokens"):
			if i+1 < len(parts) && slices.Contains(counted, parts[i+1]) {
				continue
			}
			if !numeric.MatchString(strings.TrimSpace(value)) && value != "" {
				return true
			}
		}
	}
	return len(parts) > 0 && slices.Contains(lastWords, parts[len(parts)-1]) && name != "PWD" // the working directory
}

// lastWords are names, or last words of names, of secrets.
var lastWords = []string{"auth", "authorization", "pass", "pwd", "cookie", "cookies"}

// counted are words after "token" that show that the token is not a secret.
var counted = []string{"threshold", "id", "ids", "count", "limit", "budget", "len", "per"}

// secretVariable reports whether an environment variable of that name holds a
// secret.
func secretVariable(name string) bool {
	upper := strings.ToUpper(name)
	if slices.ContainsFunc([]string{"SECRET", "PASSW", "CREDENTIAL", "AUTH"}, func(s string) bool { return strings.Contains(upper, s) }) {
		return true
	}
	parts := strings.Split(upper, "_")
	for i, part := range parts {
		if strings.HasSuffix(part, "KEY") || strings.HasSuffix(part, "KEYS") {
			return true
		}
		if strings.HasSuffix(part, "TOKEN") && (i+1 == len(parts) || !slices.Contains(counted, strings.ToLower(parts[i+1]))) {
			return true
		}
	}
	return len(parts) > 1 && slices.Contains(lastWords, strings.ToLower(parts[len(parts)-1])) || upper == "COOKIE"
}

// RedactVariable returns the value of an environment variable for display: [Redacted] for a
// secret variable, else the value without anything that looks like a secret.
func RedactVariable(name, value string) string {
	if value != "" && secretVariable(name) {
		return Redacted
	}
	return hideInValue(value)
}

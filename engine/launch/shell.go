package launch

import "strings"

// word is one argument of a command.
type word struct {
	text   string // what the program receives
	raw    string // how a script spells it; unused in an argument vector
	gap    string // what a script has before it: blanks, redirections
	opaque bool   // text holds an expansion that cannot be known here
}

// words converts an argument vector to words.
func words(argv []string) []word {
	ws := make([]word, len(argv))
	for i, arg := range argv {
		ws[i] = word{text: arg, raw: arg}
	}
	return ws
}

// segment is one simple command of a script: the text between two operators.
type segment struct {
	head string // everything before its first word, from the end of the segment before
	ws   []word
	tail string // redirections and blanks after its last word
}

// split splits a POSIX shell script into simple commands. Joining head, gap+raw of each
// word and tail of every segment restores the script byte for byte. It expands single
// variables from env; any other expansion (commands, patterns, globs) makes its word
// opaque. whole is false if the script ends within a quote or after a backslash: a shell
// rejects it or waits, and nothing can be appended.
func split(script string, env map[string]string) (segs []segment, whole bool) {
	lx := lexer{in: script, env: env}
	segs = lx.run()
	return segs, !lx.open
}

type lexer struct {
	in   string
	at   int
	env  map[string]string
	segs []segment
	cur  segment
	gap  strings.Builder
	open bool // the script ends within a quote or behind a backslash
}

func (lx *lexer) run() []segment {
	for lx.at < len(lx.in) {
		c := lx.in[lx.at]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			lx.skip(1)
		case c == '\\' && strings.HasPrefix(lx.in[lx.at:], "\\\n"):
			lx.skip(2)
		case c == '#':
			comment, _, _ := strings.Cut(lx.in[lx.at:], "\n")
			lx.skip(len(comment))
		case lx.redirection():
		case c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')':
			lx.end()
			lx.skip(1)
		default:
			lx.word()
		}
	}
	lx.end()
	// The text after the last operator belongs to the last command.
	if rest := lx.gap.String(); rest != "" || len(lx.segs) == 0 {
		lx.segs = append(lx.segs, segment{head: rest})
	}
	return lx.segs
}

func (lx *lexer) skip(n int) {
	lx.gap.WriteString(lx.in[lx.at : lx.at+n])
	lx.at += n
}

// end closes the current command, if it has words.
func (lx *lexer) end() {
	if len(lx.cur.ws) == 0 {
		return
	}
	lx.cur.tail = lx.gap.String()
	lx.gap.Reset()
	lx.segs = append(lx.segs, lx.cur)
	lx.cur = segment{}
}

// redirection skips one redirection with its target, as if it were blank space, and reports
// whether there was one.
func (lx *lexer) redirection() bool {
	s := lx.in[lx.at:]
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i == 0 && strings.HasPrefix(s, "&>") {
		i = 1
	}
	if i >= len(s) || (s[i] != '>' && s[i] != '<') {
		return false
	}
	for i < len(s) && strings.IndexByte("<>&|", s[i]) >= 0 {
		i++
	}
	lx.skip(i)
	for lx.at < len(lx.in) && (lx.in[lx.at] == ' ' || lx.in[lx.at] == '\t') {
		lx.skip(1)
	}
	from := lx.at
	lx.scan()
	lx.gap.WriteString(lx.in[from:lx.at])
	return true
}

func (lx *lexer) word() {
	from := lx.at
	text, opaque := lx.scan()
	w := word{text: text, raw: lx.in[from:lx.at], opaque: opaque}
	if len(lx.cur.ws) == 0 {
		lx.cur.head = lx.gap.String()
	} else {
		w.gap = lx.gap.String()
	}
	lx.gap.Reset()
	lx.cur.ws = append(lx.cur.ws, w)
}

// scan reads one word up to a blank or an operator and returns its value.
func (lx *lexer) scan() (text string, opaque bool) {
	var b strings.Builder
	for lx.at < len(lx.in) {
		c := lx.in[lx.at]
		switch {
		case strings.IndexByte(" \t\r\n;&|()<>", c) >= 0:
			return b.String(), opaque
		case c == '\'':
			end := strings.IndexByte(lx.in[lx.at+1:], '\'')
			if end < 0 {
				end = len(lx.in) - lx.at - 1
				opaque, lx.open = true, true
			}
			b.WriteString(lx.in[lx.at+1 : lx.at+1+end])
			lx.at = min(lx.at+end+2, len(lx.in))
		case c == '"':
			lx.at++
			opaque = lx.quoted(&b) || opaque
		case c == '\\':
			lx.at++
			lx.open = lx.open || lx.at == len(lx.in)
			if lx.at < len(lx.in) {
				if lx.in[lx.at] != '\n' {
					b.WriteByte(lx.in[lx.at])
				}
				lx.at++
			}
		case c == '$' || c == '`':
			value, known := lx.expand()
			// An unquoted value is split at blanks and globbed.
			opaque = opaque || !known || strings.ContainsAny(value, " \t\n*?[")
			b.WriteString(value)
		default:
			opaque = opaque || c == '*' || c == '?'
			b.WriteByte(c)
			lx.at++
		}
	}
	return b.String(), opaque
}

// quoted reads the rest of a double-quoted string.
func (lx *lexer) quoted(b *strings.Builder) (opaque bool) {
	for lx.at < len(lx.in) {
		switch c := lx.in[lx.at]; {
		case c == '"':
			lx.at++
			return opaque
		case c == '\\' && lx.at+1 < len(lx.in):
			next := lx.in[lx.at+1]
			if strings.IndexByte("$`\"\\\n", next) < 0 {
				b.WriteByte(c)
			}
			if next != '\n' {
				b.WriteByte(next)
			}
			lx.at += 2
		case c == '$' || c == '`':
			value, known := lx.expand()
			opaque = opaque || !known
			b.WriteString(value)
		default:
			b.WriteByte(c)
			lx.at++
		}
	}
	lx.open = true
	return true
}

// expand parses one expansion. It resolves $NAME, ${NAME} and ${NAME:-default} from env;
// anything else is returned unchanged with false.
func (lx *lexer) expand() (string, bool) {
	s := lx.in[lx.at:]
	if s[0] == '$' && len(s) > 1 {
		if n := nameLen(s[1:]); n > 0 {
			lx.at += 1 + n
			value, ok := lx.env[s[1:1+n]]
			if !ok {
				return s[:1+n], false
			}
			return value, true
		}
		if s[1] == '{' {
			if end := strings.IndexByte(s, '}'); end > 0 {
				lx.at += end + 1
				return lx.braced(s[:end+1])
			}
			lx.open = true
		}
		if s[1] == '(' {
			n := balanced(s[1:])
			lx.at += 1 + n
			lx.open = lx.open || s[n] != ')'
			return s[:1+n], false
		}
	}
	if s[0] == '`' {
		n := strings.IndexByte(s[1:], '`') + 2
		if n < 2 {
			n, lx.open = len(s), true
		}
		lx.at += n
		return s[:n], false
	}
	lx.at++
	return s[:1], len(s) == 1 || strings.IndexByte(" \t\n\"", s[1]) >= 0
}

func (lx *lexer) braced(s string) (string, bool) {
	inner := s[2 : len(s)-1]
	n := nameLen(inner)
	value, ok := lx.env[inner[:n]]
	switch op := inner[n:]; {
	case n == 0:
		return s, false
	case op == "":
		if !ok {
			return s, false
		}
		return value, true
	case strings.HasPrefix(op, ":-") && (!ok || value == ""), strings.HasPrefix(op, "-") && !ok:
		fallback := strings.TrimPrefix(strings.TrimPrefix(op, ":"), "-")
		return fallback, !strings.ContainsAny(fallback, "$`\"'\\")
	case strings.HasPrefix(op, ":-"), strings.HasPrefix(op, "-"):
		return value, true
	}
	return s, false
}

// nameLen returns the length of the variable name at the start of s.
func nameLen(s string) int {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || (c|0x20 >= 'a' && c|0x20 <= 'z')
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(s)
}

// balanced returns the length of the parenthesised text at the start of s.
func balanced(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// Line returns a command as one line for a POSIX shell, which gives the program just these arguments. Each command
// that the user may copy is made by it: names and labels come from elsewhere.
func Line(argv ...string) string {
	quoted := make([]string, len(argv))
	for i, arg := range argv {
		quoted[i] = Quote(arg)
	}
	return strings.Join(quoted, " ")
}

// Quote returns s as one word of a POSIX shell command line.
func Quote(s string) string {
	if s == "" {
		return "''"
	}
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%_+=:,./-", r)
	}
	if strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

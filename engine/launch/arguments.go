package launch

import "slices"

// Argument is one argument as given, for a caller that rejects what vLLM's own parser
// rejects.
type Argument struct {
	Name   string   // canonical; "" for a lone word
	Words  []string // as they stand, the value of a secret redacted
	Known  bool     // some release of vLLM has the flag
	Lacks  bool     // it takes a value and has none
	Silent bool     // vLLM accepts it and does not act on it
}

// Arguments lists the arguments in the order in which vLLM reads them: the
// config file's, then the command line's.
func (c *Config) Arguments() []Argument {
	all := make([]Argument, 0, len(c.items))
	for i := range c.items {
		it := &c.items[i]
		a := Argument{Name: it.name, Known: it.g.kindOf(it.name) != kindUnknown, Silent: it.ignored}
		a.Lacks = len(it.values) == 0 && !it.negated && slices.Contains([]kind{kindValue, kindList, kindRepeat}, it.g.kindOf(it.name))
		switch {
		case it.name == "":
		case it.spelled != "":
			a.Words = append(a.Words, it.spelled)
		default:
			a.Words = append(a.Words, it.label())
		}
		for _, v := range it.values {
			a.Words = append(a.Words, hideFlag(it.name, v))
		}
		all = append(all, a)
	}
	return all
}

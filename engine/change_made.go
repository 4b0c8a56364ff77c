package engine

import "slices"

// overlaid adds changes to those that were made before: each flag once, from what it
// was at first. What is as it was is none.
func overlaid(made, changes []Change) []Change {
	out := slices.Clone(made)
	for _, c := range changes {
		i := slices.IndexFunc(out, func(had Change) bool { return had.Flag == c.Flag })
		if i < 0 {
			out = append(out, c)
			continue
		}
		out[i].To = c.To
	}
	return slices.DeleteFunc(out, func(c Change) bool { return sameValue(c.From, c.To) })
}

// madeChanges lead from one set of changes to another, both made to one launch that
// cannot be read.
func madeChanges(a, b []Change) []Change {
	var out []Change
	for _, is := range b {
		if i := slices.IndexFunc(a, func(was Change) bool { return was.Flag == is.Flag }); i >= 0 {
			is.From = a[i].To
		}
		if !sameValue(is.From, is.To) {
			out = append(out, is)
		}
	}
	for _, was := range a {
		if !slices.ContainsFunc(b, func(is Change) bool { return is.Flag == was.Flag }) {
			out = append(out, was.inverse())
		}
	}
	return out
}

// wasMade says that this run made a change to a launch that cannot be read.
func (c configuration) wasMade(want Change) bool {
	return slices.ContainsFunc(c.made, func(had Change) bool { return had.Flag == want.Flag && sameValue(had.To, want.To) })
}

// sure leaves out what a change leads from where that is only assumed: nobody gave
// the flag as far as is known, so that its way back leaves it out again.
func (f *Facts) sure(changes []Change) []Change {
	out := slices.Clone(changes)
	for i, c := range out {
		if c.Flag == "--max-num-batched-tokens" && f.MaxNumBatchedTokens.Source == FromDefault {
			out[i].From = ""
		}
	}
	return out
}

// made is what this run set an argument to where the launch cannot be read; "" it was
// left out.
func (r *resolver) made(name string) (value string, ok bool) {
	if r.in.Launch != nil {
		return "", false
	}
	i := slices.IndexFunc(r.in.Made, func(c Change) bool { return nameOf(c.Flag) == name })
	if i < 0 {
		return "", false
	}
	return r.in.Made[i].To, true
}

// madeInt is made as a number.
func (r *resolver) madeInt(name string) (int, bool) {
	text, _ := r.made(name)
	return asInt(text)
}

// madeNote stands beside facts that follow from changes of this run.
const madeNote = "as this run set it: the launch command is not readable"

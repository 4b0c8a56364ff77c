package loop

import (
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
)

// addOwnChanges combines changes with those that this run made before, without those that
// cancel out.
func addOwnChanges(made, changes []engine.Change) []engine.Change {
	return slices.DeleteFunc(engine.MergeChanges(made, changes), func(c engine.Change) bool { return engine.SameValue(c.From, c.To) })
}

// ownChangesBetween returns the changes from one set of changes to another, both relative to one
// unreadable launch.
func ownChangesBetween(a, b []engine.Change) []engine.Change {
	var out []engine.Change
	for _, is := range b {
		if i := slices.IndexFunc(a, func(was engine.Change) bool { return was.Flag == is.Flag }); i >= 0 {
			is.From = a[i].To
		}
		if !engine.SameValue(is.From, is.To) {
			out = append(out, is)
		}
	}
	for _, was := range a {
		if !slices.ContainsFunc(b, func(is engine.Change) bool { return is.Flag == was.Flag }) {
			out = append(out, was.Inverse())
		}
	}
	return out
}

// hasOwnChange reports whether this run made a change to an unreadable launch.
func (c configuration) hasOwnChange(want engine.Change) bool {
	return slices.ContainsFunc(c.ownChanges, func(had engine.Change) bool { return had.Flag == want.Flag && engine.SameValue(had.To, want.To) })
}

// withoutAssumedOrigin clears the previous value of a change if it is only assumed: the flag was
// probably not given, so the revert removes it again.
func withoutAssumedOrigin(f *engine.Facts, changes []engine.Change) []engine.Change {
	out := slices.Clone(changes)
	for i, c := range out {
		if c.Sets("--max-num-batched-tokens") && f.MaxNumBatchedTokens.Source == engine.FromDefault {
			out[i].From = ""
		}
	}
	return out
}

package engine

// Term explains a word of the screen and the reports. Limits in the text are those that the
// engine uses.
type Term struct {
	Name    string   `json:"name"`
	Also    []string `json:"also"` // other search words for it
	Meaning []string `json:"meaning"`
}

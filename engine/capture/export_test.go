package capture

// ProcessWarnings is processWarnings for tests outside of the package, which need a
// source of real processes.
func (c *Capture) ProcessWarnings() []Warning { return c.processWarnings() }

package capture

// ProcessWarnings exports processWarnings for tests outside the package that need real processes.
func (c *Capture) ProcessWarnings() []Warning { return processWarnings(c) }

package document

// Statistical is a verdict as documents have it, nil where none was made.
var Statistical = statistical

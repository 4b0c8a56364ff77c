package loadgen

import "strings"

// Vocabulary has 256 common English words of at most six letters, so that a random byte selects
// one. Byte-pair tokenizers trained on English encode each of them, with the blank before it, as
// one token.
var Vocabulary = strings.Fields(`
about above accept across action active add after again age agree air all allow almost alone along also always among
amount animal answer any appear apply area arm army around arrive art ask attack author away baby back bad bag ball
bank base be bear beat become bed before begin behind being best better beyond big bill bit black blood blue board
body book born both box boy break bring build but buy call camera can cancer car card care carry case catch cause cell
center chair chance change charge check child choice choose church city civil claim class clear close coach cold color
come common cost could couple course court cover create crime cup cut dark data date day dead deal death debate decade
decide deep degree design detail die dinner do doctor dog door down draw dream drive drop drug each early east easy eat
edge effect effort eight either else end energy enjoy enough enter entire even event ever every expect expert eye face
fact factor fail fall family far fast father fear fed feel few field fight figure fill film final find fine finger
finish fire firm first fish five floor fly focus follow food foot for force forget form former four free friend from
front full fund future game garden gas girl give glass go goal good great green ground group grow growth guess gun guy
hair half hand hang happen happy hard have he head health hear heart heat heavy help here high him hit hold home hope
horse hot
`)

// vocabularyBits is the number of random bits that select a word.
const vocabularyBits = 8

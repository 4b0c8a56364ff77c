package scenarios

import "testing"

func TestSelect(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"S2", "s2", "slot-capped"} {
		got, err := Select(word)
		if err != nil || len(got) < 3 {
			t.Errorf("%s selects %d scenarios (%v), want at least 3", word, len(got), err)
		}
		for _, s := range got {
			if s.Case != "S2" {
				t.Errorf("%s selects %s", word, s.Name)
			}
		}
	}
	if got, err := Select(Default); err != nil || len(got) != 1 || got[0].Name != Default {
		t.Errorf("the default selects %d scenarios: %v", len(got), err)
	}
	if got, _ := Select(); len(got) != len(all) {
		t.Errorf("no word selects %d of %d", len(got), len(all))
	}
	if _, err := Select("S2", "sheat-capped"); err == nil {
		t.Error("an unknown name is no error")
	}
}

package revisions

import (
	"encoding/json"
	"testing"

	"github.com/stayput/stayput/inplace/apps"
)

func TestWithoutReplicas(t *testing.T) {
	const empty = `[{"op":"add","path":"/spec/replicas","value":0}]`
	for spec, want := range map[string]string{`{}`: empty, `{"replicas": 3}`: empty, `{"replicas": 0}`: "null"} {
		var rs apps.ReplicaSet
		if err := json.Unmarshal([]byte(`{"spec": `+spec+`}`), &rs); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(WithoutReplicas(&rs))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", spec, got, err, want)
		}
	}
}

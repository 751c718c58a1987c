// Says how GitOps tools judge objects. Reads one object in JSON per line; writes {"kstatus": …, "argo": …} for each.
//
//	gitops-health HEALTH.lua <objects >judgements
//
// kstatus is the library of Flux, `kubectl apply --wait`-like tools and Config Sync. Argo CD runs its health checks with this Lua
// interpreter, these libraries alone, and the object in the variable `obj`
// (https://argo-cd.readthedocs.io/en/stable/operator-manual/health/#custom-health-checks).
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

const maxLineBytes = 16 << 20

type judgement struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	script, err := os.ReadFile(os.Args[1])
	check(err)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxLineBytes)
	for lines.Scan() {
		object := &unstructured.Unstructured{}
		check(object.UnmarshalJSON(lines.Bytes()))
		result, err := kstatus.Compute(object)
		check(err)
		var plain any
		check(json.Unmarshal(lines.Bytes(), &plain))
		check(json.NewEncoder(os.Stdout).Encode(map[string]judgement{
			"kstatus": {string(result.Status), result.Message},
			"argo":    argo(string(script), plain),
		}))
	}
	check(lines.Err())
}

func argo(script string, object any) judgement {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName:   lua.OpenPackage,
		lua.BaseLibName:   lua.OpenBase,
		lua.TabLibName:    lua.OpenTable,
		lua.StringLibName: lua.OpenString,
		lua.MathLibName:   lua.OpenMath,
	} {
		check(state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)))
	}
	state.SetGlobal("obj", luajson.DecodeValue(state, object))
	check(state.DoString(script))
	text, err := luajson.Encode(state.Get(-1))
	check(err)
	var result judgement
	check(json.Unmarshal(text, &result))
	return result
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

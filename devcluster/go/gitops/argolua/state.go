// Package argolua runs health and action scripts as Argo CD does (argoproj/argo-cd, util/lua), which cannot be required as a module
// without some thirty replacements.
package argolua

import (
	"context"
	"errors"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"
	luajson "layeh.com/gopher-json"
)

// Argo CD gives a script this long.
const patience = time.Second

// run returns what a script returns, as JSON, and whether that is a table or nil; every other type is an error.
func run(script string, obj map[string]any, params map[string]string) (encoded []byte, isTable bool, err error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	// No string, math, io or debug: Argo CD opens these for nothing but its built-in scripts, unless useOpenLibs is set.
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage},
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
	} {
		l.Push(l.NewFunction(library.open))
		l.Push(lua.LString(library.name))
		l.Call(1, 0)
	}
	l.PreloadModule(lua.OsLibName, loadTimeAndDate)

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l.SetContext(ctx)
	arguments := l.NewTable()
	for name, value := range params {
		arguments.RawSetString(name, lua.LString(value))
	}
	l.SetGlobal("actionParams", arguments)
	l.SetGlobal("obj", toLua(l, obj))
	if err := l.DoString(script); err != nil {
		var failed *lua.ApiError
		if errors.As(err, &failed) {
			failed.StackTrace = ""
		}
		return nil, false, err
	}
	switch value := l.Get(-1); value.Type() {
	case lua.LTTable:
		encoded, err := luajson.Encode(value)
		return encoded, true, err
	case lua.LTNil:
		return nil, false, nil
	default:
		return nil, false, fmt.Errorf("expect table output from Lua script, not %s", value.Type())
	}
}

// loadTimeAndDate is what `require("os")` gives a script: nothing that reads files, runs commands or ends the process.
func loadTimeAndDate(l *lua.LState) int {
	whole := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer whole.Close()
	whole.Push(whole.NewFunction(lua.OpenOs))
	whole.Push(lua.LString(lua.OsLibName))
	whole.Call(1, 1)
	module := l.NewTable()
	for _, name := range []string{"time", "date"} {
		function := whole.GetField(whole.Get(-1), name).(*lua.LFunction)
		module.RawSetString(name, l.NewFunction(function.GFunction))
	}
	l.Push(module)
	return 1
}

func toLua(l *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case string:
		return lua.LString(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case []any:
		table := l.CreateTable(len(value), 0)
		for _, item := range value {
			table.Append(toLua(l, item))
		}
		return table
	case map[string]any:
		table := l.CreateTable(0, len(value))
		for key, item := range value {
			table.RawSetString(key, toLua(l, item))
		}
		return table
	}
	return lua.LNil
}

// isEmpty tells an empty table, which has no type in Lua and is encoded as an array.
func isEmpty(encoded []byte) bool {
	return string(encoded) == "[]"
}

package ir

import "fmt"

var letters = map[byte]Type{'f': F32, 'i': I32, 'u': U32, 's': I8x4, 'q': U8x4, 'b': Bool, 'x': Index}

// checkArgs compares an instruction's arguments with its signature and returns what is wrong, or nothing.
func checkArgs(i *Instr) string {
	info := i.Op.Info()
	n, any := Invalid, Invalid
	arg := 0
	sig := info.Sig
	for p := 0; p < len(sig) && sig[p] != ':'; p++ {
		optional := sig[p] == '?'
		if optional {
			p++
		}
		if arg >= len(i.Args) {
			return fmt.Sprintf("%s takes more than %d arguments", info.Name, len(i.Args))
		}
		v := i.Args[arg]
		arg++
		if v == nil {
			if optional {
				continue
			}
			return fmt.Sprintf("argument %d of %s is missing", arg, info.Name)
		}
		ok := true
		switch c := sig[p]; c {
		case 'n':
			ok = (v.Type == I32 || v.Type == U32) && (n == Invalid || n == v.Type)
			n = v.Type
		case 'w':
			ok = v.Type.Word() && (any == Invalid || any == v.Type)
			any = v.Type
		default:
			ok = v.Type == letters[c]
		}
		if !ok {
			return fmt.Sprintf("argument %d of %s is %s", arg, info.Name, v.Type)
		}
	}
	if arg != len(i.Args) && i.Op != OpStore && i.Op != OpMMA {
		return fmt.Sprintf("%s takes %d arguments, not %d", info.Name, arg, len(i.Args))
	}
	return ""
}

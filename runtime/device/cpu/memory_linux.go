package cpu

import "os"

func systemMemory() Memory { return parseMeminfo(os.DirFS("/proc")) }

#include "textflag.h"

// func setFloatControl(v uint32)
TEXT ·setFloatControl(SB), NOSPLIT, $0-4
	LDMXCSR v+0(FP)
	RET

// func floatControl() uint32
TEXT ·floatControl(SB), NOSPLIT, $0-4
	STMXCSR ret+0(FP)
	RET

// func pause()
TEXT ·pause(SB), NOSPLIT, $0-0
	PAUSE
	RET

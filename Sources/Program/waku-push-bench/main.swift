import Foundation
import PushBench

exit(await BenchProgram.run())

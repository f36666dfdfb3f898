import Foundation
import WakuPushCommands

exit(await WakuPushProgram.run())

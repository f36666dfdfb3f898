import Foundation
import WakuPushCommands

StandardStream.openClosed()
exit(await WakuPushProgram.run())

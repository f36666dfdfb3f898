// Foundation's Process and the run loop source of the thread that started it hold each other once it has ended, where that is a thread of
// Swift's own: reported, though nothing of this program holds it. Process.waitUntilExit would let go of it, and loses marks of its own.
import Foundation

func run() async {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sleep")
    process.arguments = ["0.05"]
    process.standardInput = FileHandle.nullDevice
    try? process.run()
    while process.isRunning { try? await Task.sleep(for: .milliseconds(1)) }
}
for _ in 0..<8 { await Task.detached { await run() }.value }

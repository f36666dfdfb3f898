import Foundation
import TestSupport

/// The program as the first process of a container, for which the kernel drops signals with the default action. Needs user namespaces, which some machines
/// forbid.
enum FirstProcess {
    static let isAllowed: Bool = {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "exec unshare --user --map-root-user --pid --fork true"]
        process.standardError = FileHandle.nullDevice
        guard (try? ChildProcess.start(process)) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    /// Starts it, and sends SIGTERM to it once, as soon as a file exists.
    static func start(_ arguments: [String], endingAt file: String) throws -> ChildProcess {
        let end = #"(until [ -e "$FILE" ]; do :; done; kill -TERM 1) & exec "$0" "$@""#
        return try ChildProcess(
            arguments, environment: ["FILE": file], shell: #"exec unshare --user --map-root-user --pid --fork sh -c '\#(end)' "$0" "$@""#)
    }
}

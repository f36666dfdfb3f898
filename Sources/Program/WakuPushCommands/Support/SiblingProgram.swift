import Foundation

/// The other program of this package: benchmarks, and stand-ins for other parties.
enum SiblingProgram {
    private static let name = "waku-push-bench"

    /// Says so on standard error, and replaces this process: the program in the folder of this one, or else the first on the PATH.
    static func replaceProcess(_ arguments: [String]) throws(CommandFailure) {
        guard let path else {
            throw CommandFailure(
                .unavailable,
                "\(name) is neither beside this program nor on the PATH: build it with swift build -c release --product \(name)")
        }
        CommandFailure.report("running \(path)")
        let errorNumber = Invocation.current.replaceProcess(path, [name] + arguments)
        throw CommandFailure(.unavailable, "\(path) can't be run: \(String(cString: strerror(errorNumber)))")
    }

    private static var path: String? {
        let own = Invocation.current.executable.map { [URL(fileURLWithPath: $0).deletingLastPathComponent().path] } ?? []
        let folders = own + (Invocation.current.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        // An empty entry of the PATH, or a relative one, could be any folder.
        return folders.filter { $0.hasPrefix("/") }.map { $0 + "/" + name }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}

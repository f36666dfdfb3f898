import Foundation
import TestSupport

/// A headless Chromium with one page, controlled over a pipe by the DevTools protocol: JSON objects that end with a zero byte.
final class Browser: Sendable {
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    private static let timeoutMilliseconds: Int32 = 60_000

    private let folder: TemporaryFolder
    private let process: ChildProcess
    private let commands: Int32
    private let answers: Int32
    private let connection: Connection

    private actor Numbers {
        private var last = 0
        func next() -> Int {
            last += 1
            return last
        }
    }

    /// Its callers block a separate thread, because the tested node needs the others.
    private struct Connection: Sendable {
        let queue = DispatchQueue(label: "browser")
        let numbers = Numbers()
    }

    private let session: String

    /// - Throws: ``TestFailure``
    init() async throws {
        let program = try ExternalTool.path(of: "chromium")
        folder = try TemporaryFolder()
        let names = ["commands", "answers"].map { [folder] in folder.path + "/" + $0 }
        for name in names where mkfifo(name, 0o600) != 0 { throw Failed(description: "no pipe \(name)") }
        // For both, so that neither side waits for the other to open.
        let files = names.map { Foundation.open($0, O_RDWR | O_CLOEXEC) }
        (commands, answers) = (files[0], files[1])
        // It loads only the node's page, and its sandbox does not work in all test environments.
        let command = #"commands=$1; answers=$2; shift 2; exec "$0" "$@" 3< "$commands" 4> "$answers""#
        process = try ChildProcess(
            [
                "-c", command, program, names[0], names[1], "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir=\(folder.path)/profile", "about:blank",
            ], program: URL(fileURLWithPath: "/bin/sh"), environment: ["HOME": folder.path], limit: .seconds(300))
        connection = Connection()
        let page =
            try await Self.call(
                "Target.createTarget", #"{"url":"about:blank"}"#, nil, connection, commands, answers)["targetId"] as? String ?? ""
        session =
            try await Self.call(
                "Target.attachToTarget", #"{"targetId":"\#(page)","flatten":true}"#, nil, connection, commands, answers)["sessionId"]
            as? String
            ?? ""
        try await call("Page.enable")
    }

    deinit {
        process.send(SIGKILL)
        close(commands)
        close(answers)
    }

    // MARK: Operations

    func look(width: Int, height: Int, isDark: Bool) async throws {
        try await call(
            "Emulation.setDeviceMetricsOverride", #"{"width":\#(width),"height":\#(height),"deviceScaleFactor":1,"mobile":false}"#)
        try await call(
            "Emulation.setEmulatedMedia",
            #"{"features":[{"name":"prefers-color-scheme","value":"\#(isDark ? "dark" : "light")"}]}"#)
    }

    func runScripts(_ isAllowed: Bool) async throws {
        try await call("Emulation.setScriptExecutionDisabled", #"{"value":\#(!isAllowed)}"#)
    }

    /// Returns once the page is loaded.
    func open(url: String) async throws {
        try await call("Page.navigate", #"{"url":"\#(url)"}"#)
        try await eventually { try await self.text("document.readyState + location.href") == "complete" + url }
    }

    /// The value of an expression, as text.
    func text(_ expression: String) async throws -> String {
        let quoted = String(decoding: try JSONEncoder().encode("String(\(expression))"), as: UTF8.self)
        let result = try await call("Runtime.evaluate", #"{"expression":\#(quoted),"returnByValue":true}"#)
        guard let value = (result["result"] as? [String: Any])?["value"] as? String else { throw Failed(description: "\(result)") }
        return value
    }

    /// The whole page as PNG.
    func picture() async throws -> Data {
        let size = try await text("document.documentElement.scrollWidth + ' ' + document.documentElement.scrollHeight").split(
            separator: " ")
        let result = try await call(
            "Page.captureScreenshot",
            #"{"captureBeyondViewport":true,"clip":{"x":0,"y":0,"width":\#(size[0]),"height":\#(size[1]),"scale":1}}"#)
        guard let data = (result["data"] as? String).flatMap({ Data(base64Encoded: $0) }) else { throw Failed(description: "no picture") }
        return data
    }

    // MARK: Protocol

    @discardableResult
    private func call(_ method: String, _ parameters: String = "{}") async throws -> [String: Any] {
        try await Self.call(method, parameters, session, connection, commands, answers)
    }

    private static func call(
        _ method: String, _ parameters: String, _ session: String?, _ connection: Connection, _ commands: Int32, _ answers: Int32
    ) async throws -> [String: Any] {
        let number = await connection.numbers.next()
        let sessionMember = session.map { #""sessionId":"\#($0)","# } ?? ""
        let command = #"{"id":\#(number),\#(sessionMember)"method":"\#(method)","params":\#(parameters)}"#
        let answer = try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Data, any Error>) in
            connection.queue.async {
                continuation.resume(
                    with: Result {
                        try write(Array(command.utf8) + [0], to: commands)
                        while true {
                            let data = try readAnswer(from: answers)
                            let object = try JSONSerialization.jsonObject(with: data) as? [String: Any]
                            if object?["id"] as? Int == number { return data }
                        }
                    })
            }
        }
        guard let object = try JSONSerialization.jsonObject(with: answer) as? [String: Any], let result = object["result"] as? [String: Any]
        else { throw Failed(description: "\(method): \(String(decoding: answer, as: UTF8.self))") }
        return result
    }

    private static func write(_ bytes: [UInt8], to file: Int32) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(file, $0.baseAddress, $0.count) }
            guard count > 0 else { throw Failed(description: "the browser's pipe is closed") }
            rest = rest.dropFirst(count)
        }
    }

    private static func readAnswer(from file: Int32) throws -> Data {
        var answer = Data()
        var byte = [UInt8](repeating: 0, count: 1)
        while true {
            var waiting = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, timeoutMilliseconds) == 1 else { throw Failed(description: "the browser does not answer") }
            guard read(file, &byte, 1) == 1 else { throw Failed(description: "the browser's pipe is closed") }
            if byte[0] == 0 { return answer }
            answer.append(byte[0])
        }
    }
}

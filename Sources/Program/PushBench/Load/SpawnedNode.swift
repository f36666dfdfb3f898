import CurlClient
import Foundation
import WakuCrypto

/// `waku-push serve` as a separate process, to measure its memory and CPU time.
final class SpawnedNode: Sendable {
    private let process: BenchChild
    private let client = CurlClient()
    let httpURL: String

    init(identityFile: String, folder: String, relays: [String]) throws {
        let port = try FreePort.find()
        httpURL = "http://127.0.0.1:\(port)"
        process = try BenchChild(
            [
                "serve", "--identity", identityFile, "--data", folder, "--http", "127.0.0.1:\(port)", "--log-level", "error",
                "--reply-delay", "off", "--derive-ahead", "off",
            ] + relays.flatMap { ["--relay", $0] })
    }

    /// Writes the identity file of a node, and returns its path.
    static func writeIdentity(_ key: PrivateKey, in folder: String) throws(BenchError) -> String {
        let (path, digits) = (folder + "/id.key", key.withBytes { hexString($0) } + "\n")
        guard FileManager.default.createFile(atPath: path, contents: Data(digits.utf8), attributes: [.posixPermissions: 0o600]) else {
            throw .disk
        }
        return path
    }

    var usage: ProcessUsage { ProcessUsage(of: process.id) }

    /// The value of a sample in `/metrics`; 0 if there is none.
    func metric(_ sample: String) async throws -> Double {
        let response = try await client.send(HTTPRequest(url: httpURL + "/metrics", timeout: .seconds(5)))
        let line = String(decoding: response.body, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(sample + " ") }
        return line.flatMap { Double($0.dropFirst(sample.count + 1)) } ?? 0
    }

    var residentBytes: Int? { ProcessMemory.residentBytes(of: process.id) }

    /// Returns when `/readyz` answers 200, or names gorush alone: there is none.
    func waitUntilReady(limit: Duration) async throws {
        let deadline = ContinuousClock.now + limit
        while true {
            let response = try? await client.send(HTTPRequest(url: httpURL + "/readyz", timeout: .seconds(1)))
            let obstacles = String(decoding: response?.body ?? [], as: UTF8.self).split(separator: "\n")
            if response?.status == 200 || response != nil && obstacles.allSatisfy({ $0.hasPrefix("gorush: ") }) { return }
            guard process.isRunning, ContinuousClock.now < deadline else {
                throw BenchError(code: .unavailable, message: "waku-push serve did not become ready: run it by itself to see why")
            }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Terminates it, with SIGKILL if it does not end in time.
    func stop() async {
        let deadline = ContinuousClock.now + .seconds(20)
        process.terminate()
        while process.isRunning, ContinuousClock.now < deadline { try? await Task.sleep(for: .milliseconds(10)) }
        process.end()
    }
}

enum FreePort {
    /// Finds a free port of 127.0.0.1.
    static func find() throws(BenchError) -> UInt16 {
        let bound = try bind("127.0.0.1")
        close(bound.descriptor)
        return bound.port
    }

    /// Makes a TCP socket that is bound to a free port of an address of this machine.
    static func bind(_ host: String) throws(BenchError) -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        inet_pton(AF_INET, host, &address.sin_addr)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                Glibc.bind(descriptor, pointer, length) == 0 && getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard isBound else { throw BenchError(code: .unavailable, message: "no port of \(host) is free") }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }
}

import ArgumentParser
import CurlClient
import Foundation
import Gorush
import PushNode
import StatusProtocol

/// How to reach gorush. Secrets come from files.
struct GorushOptions: ParsableArguments {
    @Option(help: "The gorush server, with or without a path.")
    var gorush: String = Environment.string("gorush") ?? "http://127.0.0.1:8088"

    @Option(help: "What a notification looks like: \(PayloadProfile.allCases.map(\.rawValue).joined(separator: ", ")).")
    var payloadProfile: PayloadProfile = Environment.value("payload-profile", .combined)

    @Option(help: "Certificates (PEM) to trust instead of the system's.")
    var gorushCa: String?

    @Option(help: "User for basic authentication.")
    var gorushUser: String?

    @Option(help: "File with the password of --gorush-user.")
    var gorushPasswordFile: String?

    @Option(help: "File with a bearer token.")
    var gorushTokenFile: String?

    @Option(help: "An extra header, \"Name: value\"; repeat it for more.")
    var gorushHeader: [String] = Environment.list("gorush-header")

    @Option(help: "File with the secret that gorush's feedback hook shows: 16 to 256 characters. Without it there is no /feedback.")
    var feedbackSecretFile: String?

    func feedbackSecret() throws(CommandFailure) -> FeedbackSecret? {
        guard let path = feedbackSecretFile ?? Environment.string("feedback-secret-file") else { return nil }
        let text = try secret(path)
        // gorush leaves out headers whose value has a colon, and splits what it reads from its environment at blanks.
        guard (16...256).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7e).contains($0) && $0 != UInt8(ascii: ":") }) else {
            throw CommandFailure(
                .data,
                "secret file \(path) must hold 16 to 256 printable characters without blank and colon: make one with openssl rand -hex 24")
        }
        return FeedbackSecret(text)
    }

    func client() throws -> GorushClient {
        try GorushClient(client: CurlClient(configuration: try curlConfiguration()), url: gorush, profile: payloadProfile)
    }

    func curlConfiguration() throws -> CurlConfiguration {
        var configuration = CurlConfiguration()
        if let gorushCa = gorushCa ?? Environment.string("gorush-ca") {
            guard FileManager.default.isReadableFile(atPath: gorushCa) else {
                throw CommandFailure(.data, "certificates \(gorushCa) can't be read: give --gorush-ca a PEM file")
            }
            configuration.trust = .file(path: gorushCa)
        }
        configuration.credentials = try credentials()
        configuration.headers = try gorushHeader.map { header in
            guard let colon = header.firstIndex(of: ":"), colon != header.startIndex, !header.contains(where: \.isNewline) else {
                throw CommandFailure(.usage, "--gorush-header is not of the form \"Name: value\"")
            }
            return (String(header[..<colon]), header[header.index(after: colon)...].trimmingCharacters(in: .whitespaces))
        }
        return configuration
    }

    private func credentials() throws(CommandFailure) -> HTTPCredentials {
        let user = gorushUser ?? Environment.string("gorush-user")
        if let path = gorushTokenFile ?? Environment.string("gorush-token-file") {
            guard user == nil else {
                throw CommandFailure(.usage, "--gorush-user and --gorush-token-file exclude each other: give one of them")
            }
            return .bearer(token: try secret(path))
        }
        guard let user else { return .none }
        guard let path = gorushPasswordFile ?? Environment.string("gorush-password-file") else {
            throw CommandFailure(.usage, "--gorush-password-file is missing beside --gorush-user")
        }
        return .basic(user: user, password: try secret(path))
    }

    private func secret(_ path: String) throws(CommandFailure) -> String {
        guard let content = FileManager.default.contents(atPath: path) else {
            throw CommandFailure(.data, "secret file \(path) can't be read: is it there, and may this user read it?")
        }
        let secret = String(decoding: content, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard !secret.isEmpty, !secret.contains(where: \.isNewline) else {
            throw CommandFailure(.data, "secret file \(path) must hold one line")
        }
        return secret
    }
}

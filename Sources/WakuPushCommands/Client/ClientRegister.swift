public import ArgumentParser
import Foundation
import PushClient
public import PushTypes
import StatusProtocol
import WakuCrypto

extension Platform: ExpressibleByArgument {
    public init?(argument: String) {
        guard let platform = Platform.allCases.first(where: { $0.name == argument }) else { return nil }
        self = platform
    }

    public static var allValueStrings: [String] { allCases.map(\.name) }
    public var defaultValueDescription: String { name }
}

extension Client {
    struct Register: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Registers a device.")

        @OptionGroup var client: ClientOptions
        @OptionGroup var owner: ClientIdentityOptions
        @Option(help: "apn or firebase.") var platform: Platform = .apn
        @Option(help: "What APNs or Firebase knows the device by.") var deviceToken: String
        @Option(help: "The app, for APNs.") var apnTopic = ""
        @Option(help: "The installation's id. [default: a new UUID]") var installation: String?
        @Option(help: "What senders must show, a UUID. [default: a new one]") var accessToken: String?
        @Option(help: "Above what was registered before for the installation.") var version: UInt64 = 1
        @Option(name: .customLong("allow"), help: "A public key that may have the access token; repeat it for more. Without, everyone may.")
        var allowed: [PublicKeyArgument] = []
        @Flag(help: "Register, but want no notifications.") var disabled = false

        func run() async throws {
            try await reportingFailures {
                var device = DeviceRegistration(
                    platform: platform, deviceToken: DeviceToken(deviceToken), apnTopic: apnTopic,
                    installationID: InstallationID(installation ?? UUID().uuidString.lowercased()),
                    accessToken: AccessToken(accessToken ?? UUID().uuidString.lowercased()), version: version)
                device.contacts = allowed.map(\.key)
                device.enabled = !disabled
                let registered = device
                let error = try await client.withClient(owner.required()) { [client] in
                    try await $0.register(registered, with: client.server.key, timeout: client.timeout.duration)
                }
                let result = RegistrationResult(error, registered.installationID, version)
                try result.print(asJSON: client.json)
            }
        }
    }

    struct Unregister: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Ends a registration.")

        @OptionGroup var client: ClientOptions
        @OptionGroup var owner: ClientIdentityOptions
        @Option(help: "The installation's id.") var installation: String
        @Option(help: "Above the registered version.") var version: UInt64

        func run() async throws {
            try await reportingFailures {
                let id = InstallationID(installation)
                let error = try await client.withClient(owner.required()) { [client, version] in
                    try await $0.unregister(id, version: version, with: client.server.key, timeout: client.timeout.duration)
                }
                try RegistrationResult(error, id, version).print(asJSON: client.json)
            }
        }
    }
}

/// What the server said to a registration.
private struct RegistrationResult: Encodable {
    let success: Bool
    let error: String?
    let installation: String
    let version: UInt64

    init(_ error: PushNotificationRegistrationResponse.ErrorType?, _ installation: InstallationID, _ version: UInt64) {
        success = error == nil
        self.error = error?.name
        self.installation = installation.string
        self.version = version
    }

    /// - Throws: ``CommandFailure`` when the server refused.
    func print(asJSON: Bool) throws {
        if asJSON {
            try Output.json(self)
        } else if success {
            Output.fields([("success", "yes"), ("installation", Output.printable(installation)), ("version", String(version))])
        }
        if let error { throw CommandFailure(.data, "the server refused: \(error)") }
    }
}

extension PushNotificationRegistrationResponse.ErrorType {
    /// As in the specification.
    var name: String {
        switch self {
        case .unknown: "UNKNOWN_ERROR_TYPE"
        case .malformedMessage: "MALFORMED_MESSAGE"
        case .versionMismatch: "VERSION_MISMATCH"
        case .unsupportedTokenType: "UNSUPPORTED_TOKEN_TYPE"
        case .internalError: "INTERNAL_ERROR"
        }
    }
}

extension PushNotificationReport.ErrorType {
    /// As in the specification.
    var name: String {
        switch self {
        case .unknown: "UNKNOWN_ERROR_TYPE"
        case .wrongToken: "WRONG_TOKEN"
        case .internalError: "INTERNAL_ERROR"
        case .notRegistered: "NOT_REGISTERED"
        }
    }
}

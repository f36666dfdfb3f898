import StatusProtocol
import Waku
import WakuCrypto

/// A row in the JSON output of `admin registrations list` and `remove`.
public struct RegistrationRow: Decodable, Equatable {
    public let keyHash: String
    public let installation: String
    public let state: String
    public let version: UInt64

    public init(_ client: TestClient, state: String = "apn", version: UInt64 = 1) {
        keyHash = client.keyHash.hex
        installation = client.installationID.string
        self.state = state
        self.version = version
    }
}

/// A row in the JSON output of `admin registrations show`.
public struct RegistrationDetail: Decodable {
    public let row: RegistrationRow
    public let opened: Opened?

    public struct Opened: Decodable {
        public let enabled: Bool
        public let apnTopic: String
        public let deviceToken: String?
        public let accessToken: String?
    }
}

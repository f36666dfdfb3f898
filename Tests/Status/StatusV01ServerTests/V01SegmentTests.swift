import Core
import NodeAPI
import NodeMetrics
import RateLimits
import StatusProtocol
import StatusRules
import TestSupport
import Testing
import WakuCrypto

@testable import StatusV01Server
@testable import Waku

@Suite("Version 0.1: segments")
struct V01SegmentTests {
    @Test func segmentsThatMakeRoomForOthersAreReported() throws {
        let (server, now, limits) = (PrivateKey.generate(), Timestamp.now(), V01Limits(.none))
        var segments = SegmentAssembler.Limits()
        segments.wholeCount = 2
        let decoder = V01Decoder(
            identity: server, rules: V01.RegisterRules(server: server.publicKey), ages: RequestRules(maximumAge: .seconds(600)),
            limits: limits, segments: segments)
        for number in UInt8(0)..<5 {
            let part = SegmentMessage(wholeHash: randomBytes(32), index: 0, count: 2, payload: [number]).encoded()
            let frame = PayloadFrame.encode(part, signedBy: .generate(), padding: randomBytes)
            let message = WakuMessage(
                payload: ECIES.seal(frame, to: server.publicKey),
                contentTopic: ContentTopic(TopicTag(of: V01.serverTopic(server.publicKey))),
                timestamp: now)
            let drop = #expect(throws: Drop.self) { try decoder.decode(message, at: now) }
            #expect(drop?.counter == .segment)
        }
        let totals = limits.limiter.refusals.totals
        #expect(totals.count == 1 && totals.first?.key.limit == .segments && totals.first?.value == 3)
    }
}

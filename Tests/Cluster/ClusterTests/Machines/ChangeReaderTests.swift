import Core
import Testing

@testable import Cluster

@Suite("Reading changes of other nodes")
struct ChangeReaderTests {
    private let began = Instant(sinceEpoch: .seconds(1_000))
    private static let second: Int64 = 1_000_000

    @Test("Readings overlap by a minute")
    func overlap() {
        var reader = ChangeReader(ClusterConfiguration(), at: began)
        #expect(reader.start == nil)
        for minute in 1...20 {
            let time = Int64(minute) * 60 * Self.second
            #expect(reader.read(at: time, isComplete: true, now: began + .seconds(minute * 60)) == false)
            #expect(reader.start == time - 60 * Self.second)
        }
    }

    @Test("Everything is reloaded when changes may have been missed")
    func reload() {
        var reader = ChangeReader(ClusterConfiguration(), at: began)
        #expect(reader.read(at: 0, isComplete: true, now: began) == false)
        // The last reading is longer ago than changes are kept.
        #expect(reader.read(at: 540 * Self.second, isComplete: true, now: began) == false)
        #expect(reader.read(at: 1_081 * Self.second, isComplete: true, now: began) == true)
        // The clock was set back.
        #expect(reader.read(at: 1_080 * Self.second, isComplete: true, now: began) == true)
        #expect(reader.read(at: 1_140 * Self.second, isComplete: true, now: began) == false)
        // There are more changes than can be read.
        #expect(reader.read(at: 1_200 * Self.second, isComplete: false, now: began) == true)
        #expect(reader.read(at: 1_260 * Self.second, isComplete: true, now: began) == false)
    }

    @Test("Everything is reloaded once a day")
    func daily() {
        var reader = ChangeReader(ClusterConfiguration(), at: began)
        let reloads = (1...3 * 1_440).filter { minute in
            reader.read(at: Int64(minute) * 60 * Self.second, isComplete: true, now: began + .seconds(minute * 60))
        }
        #expect(reloads == [1_440, 2_880, 4_320])
    }
}

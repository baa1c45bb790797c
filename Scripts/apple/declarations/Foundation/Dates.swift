// Dates, calendars, time zones and locales.

// https://developer.apple.com/documentation/foundation/date
public struct Date: Comparable, Hashable, Equatable, Sendable {
    public typealias Stride = TimeInterval

    public static let timeIntervalBetween1970AndReferenceDate: TimeInterval = 978_307_200.0
    public static var timeIntervalSinceReferenceDate: TimeInterval { fatalError() }
    public static let distantFuture = Date()
    public static let distantPast = Date()
    public static var now: Date { fatalError() }

    public init() {}
    public init(timeIntervalSinceNow: TimeInterval) {}
    public init(timeIntervalSince1970: TimeInterval) {}
    public init(timeInterval: TimeInterval, since date: Date) {}
    public init(timeIntervalSinceReferenceDate ti: TimeInterval) {}

    public var timeIntervalSinceReferenceDate: TimeInterval { fatalError() }
    public func timeIntervalSince(_ date: Date) -> TimeInterval { fatalError() }
    public var timeIntervalSinceNow: TimeInterval { fatalError() }
    public var timeIntervalSince1970: TimeInterval { fatalError() }
    public func addingTimeInterval(_ timeInterval: TimeInterval) -> Date { fatalError() }
    public mutating func addTimeInterval(_ timeInterval: TimeInterval) {}
    public func hash(into hasher: inout Hasher) {}
    public func compare(_ other: Date) -> ComparisonResult { fatalError() }
    public static func == (lhs: Date, rhs: Date) -> Bool { fatalError() }
    public static func < (lhs: Date, rhs: Date) -> Bool { fatalError() }
    public static func > (lhs: Date, rhs: Date) -> Bool { fatalError() }
    public static func + (lhs: Date, rhs: TimeInterval) -> Date { fatalError() }
    public static func - (lhs: Date, rhs: TimeInterval) -> Date { fatalError() }
    public static func += (lhs: inout Date, rhs: TimeInterval) {}
    public static func -= (lhs: inout Date, rhs: TimeInterval) {}
}
extension Date: CustomDebugStringConvertible, CustomStringConvertible, CustomReflectable {
    public var debugDescription: String { fatalError() }
    public var description: String { fatalError() }
    public func description(with locale: Locale?) -> String { fatalError() }
    public var customMirror: Mirror { fatalError() }
}
extension Date: Codable {
    public init(from decoder: any Decoder) throws {}
    public func encode(to encoder: any Encoder) throws {}
}
extension Date: Strideable {
    public func distance(to other: Date) -> TimeInterval { fatalError() }
    public func advanced(by n: TimeInterval) -> Date { fatalError() }
}

// https://developer.apple.com/documentation/foundation/dateinterval
public struct DateInterval: Comparable, Hashable, Codable, Sendable {
    public var start: Date
    public var end: Date {
        get { fatalError() }
        set {}
    }
    public var duration: TimeInterval
    public init() { fatalError() }
    public init(start: Date, end: Date) { fatalError() }
    public init(start: Date, duration: TimeInterval) { fatalError() }
    public func contains(_ date: Date) -> Bool { fatalError() }
    public static func < (lhs: DateInterval, rhs: DateInterval) -> Bool { fatalError() }
}

// https://developer.apple.com/documentation/foundation/locale
public struct Locale: Hashable, Equatable, Sendable {
    public static var autoupdatingCurrent: Locale { fatalError() }
    public static var current: Locale { fatalError() }
    public init(identifier: String) {}
    public var identifier: String { fatalError() }
    public func hash(into hasher: inout Hasher) {}
    public static func == (lhs: Locale, rhs: Locale) -> Bool { fatalError() }
}
extension Locale: Codable {
    public init(from decoder: any Decoder) throws {}
    public func encode(to encoder: any Encoder) throws {}
}

// https://developer.apple.com/documentation/foundation/timezone
public struct TimeZone: Hashable, Equatable, Sendable {
    public static var current: TimeZone { fatalError() }
    public static var autoupdatingCurrent: TimeZone { fatalError() }
    @available(macOS 13, iOS 16, tvOS 16, watchOS 9, visionOS 1, *)
    public static var gmt: TimeZone { fatalError() }
    public init?(identifier: __shared String) {}
    public init?(secondsFromGMT seconds: Int) {}
    public init?(abbreviation: __shared String) {}
    public var identifier: String { fatalError() }
    public func secondsFromGMT(for date: Date = Date()) -> Int { fatalError() }
    public func hash(into hasher: inout Hasher) {}
    public static func == (lhs: TimeZone, rhs: TimeZone) -> Bool { fatalError() }
}
extension TimeZone: Codable {
    public init(from decoder: any Decoder) throws {}
    public func encode(to encoder: any Encoder) throws {}
}

// https://developer.apple.com/documentation/foundation/datecomponents
public struct DateComponents: Hashable, Equatable, Sendable {
    public init(
        calendar: Calendar? = nil, timeZone: TimeZone? = nil, era: Int? = nil, year: Int? = nil, month: Int? = nil,
        day: Int? = nil, hour: Int? = nil, minute: Int? = nil, second: Int? = nil, nanosecond: Int? = nil,
        weekday: Int? = nil, weekdayOrdinal: Int? = nil, quarter: Int? = nil, weekOfMonth: Int? = nil,
        weekOfYear: Int? = nil, yearForWeekOfYear: Int? = nil
    ) {}
    public var calendar: Calendar?
    public var timeZone: TimeZone?
    public var era: Int?
    public var year: Int?
    public var month: Int?
    public var day: Int?
    public var hour: Int?
    public var minute: Int?
    public var second: Int?
    public var nanosecond: Int?
    public var weekday: Int?
}

// https://developer.apple.com/documentation/foundation/calendar
public struct Calendar: Hashable, Equatable, Sendable {
    // https://developer.apple.com/documentation/foundation/calendar/identifier
    public enum Identifier: Sendable {
        case gregorian
        case buddhist
        case chinese
        case coptic
        case ethiopicAmeteMihret
        case ethiopicAmeteAlem
        case hebrew
        case iso8601
        case indian
        case islamic
        case islamicCivil
        case japanese
        case persian
        case republicOfChina
        case islamicTabular
        case islamicUmmAlQura
    }
    // https://developer.apple.com/documentation/foundation/calendar/component
    public enum Component: Sendable {
        case era
        case year
        case month
        case day
        case hour
        case minute
        case second
        case weekday
        case weekdayOrdinal
        case quarter
        case weekOfMonth
        case weekOfYear
        case yearForWeekOfYear
        case nanosecond
        case calendar
        case timeZone
        @available(macOS 14, iOS 17, tvOS 17, watchOS 10, visionOS 1, *)
        case isLeapMonth
        @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
        case isRepeatedDay
        @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
        case dayOfYear
    }
    public static var current: Calendar { fatalError() }
    public static var autoupdatingCurrent: Calendar { fatalError() }
    public init(identifier: __shared Calendar.Identifier) {}
    public var identifier: Calendar.Identifier { fatalError() }
    public var locale: Locale? {
        get { fatalError() }
        set {}
    }
    public var timeZone: TimeZone {
        get { fatalError() }
        set {}
    }
    public func date(from components: DateComponents) -> Date? { fatalError() }
    public func dateComponents(_ components: Set<Calendar.Component>, from date: Date) -> DateComponents { fatalError() }
    public func component(_ component: Calendar.Component, from date: Date) -> Int { fatalError() }
    public func hash(into hasher: inout Hasher) {}
    public static func == (lhs: Calendar, rhs: Calendar) -> Bool { fatalError() }
}

// https://developer.apple.com/documentation/foundation/formatstyle
public protocol FormatStyle<FormatInput, FormatOutput>: Decodable, Encodable, Hashable {
    associatedtype FormatInput
    associatedtype FormatOutput
    func format(_ value: FormatInput) -> FormatOutput
    func locale(_ locale: Locale) -> Self
}
extension FormatStyle {
    public func locale(_ locale: Locale) -> Self { self }
}

// https://developer.apple.com/documentation/foundation/parsestrategy
public protocol ParseStrategy: Decodable, Encodable, Hashable {
    associatedtype ParseInput
    associatedtype ParseOutput
    func parse(_ value: ParseInput) throws -> ParseOutput
}

// https://developer.apple.com/documentation/foundation/parseableformatstyle
public protocol ParseableFormatStyle: FormatStyle {
    associatedtype Strategy: ParseStrategy
    where Strategy.ParseInput == FormatOutput, Strategy.ParseOutput == FormatInput
    var parseStrategy: Strategy { get }
}

// https://developer.apple.com/documentation/foundation/date/formatted(_:)
extension Date {
    public func formatted<F: FormatStyle>(_ format: F) -> F.FormatOutput where F.FormatInput == Date { fatalError() }
    public init<T: ParseStrategy>(_ value: T.ParseInput, strategy: T) throws where T.ParseOutput == Date { fatalError() }
    public func ISO8601Format(_ style: ISO8601FormatStyle = .init()) -> String { fatalError() }
}

// https://developer.apple.com/documentation/foundation/date/iso8601formatstyle
extension Date {
    public struct ISO8601FormatStyle: Sendable {
        public enum TimeZoneSeparator: String, Codable, Sendable {
            case colon = ":"
            case omitted = ""
        }
        public enum DateSeparator: String, Codable, Sendable {
            case dash = "-"
            case omitted = ""
        }
        public enum TimeSeparator: String, Codable, Sendable {
            case colon = ":"
            case omitted = ""
        }
        public enum DateTimeSeparator: String, Codable, Sendable {
            case space = " "
            case standard = "'T'"
        }
        public private(set) var timeSeparator: TimeSeparator
        public private(set) var includingFractionalSeconds: Bool
        public private(set) var timeZoneSeparator: TimeZoneSeparator
        public private(set) var dateSeparator: DateSeparator
        public private(set) var dateTimeSeparator: DateTimeSeparator
        public var timeZone: TimeZone

        public init(
            dateSeparator: DateSeparator = .dash, dateTimeSeparator: DateTimeSeparator = .standard,
            timeZone: TimeZone = TimeZone(secondsFromGMT: 0)!
        ) { fatalError() }
        public init(
            dateSeparator: DateSeparator = .dash, dateTimeSeparator: DateTimeSeparator = .standard,
            timeSeparator: TimeSeparator = .colon, timeZoneSeparator: TimeZoneSeparator = .omitted,
            includingFractionalSeconds: Bool = false, timeZone: TimeZone = TimeZone(secondsFromGMT: 0)!
        ) { fatalError() }

        public func year() -> Self { self }
        public func weekOfYear() -> Self { self }
        public func month() -> Self { self }
        public func day() -> Self { self }
        public func time(includingFractionalSeconds: Bool) -> Self { self }
        public func timeZone(separator: TimeZoneSeparator) -> Self { self }
        public func dateSeparator(_ separator: DateSeparator) -> Self { self }
        public func dateTimeSeparator(_ separator: DateTimeSeparator) -> Self { self }
        public func timeSeparator(_ separator: TimeSeparator) -> Self { self }
        public func timeZoneSeparator(_ separator: TimeZoneSeparator) -> Self { self }
    }
}
extension Date.ISO8601FormatStyle: ParseableFormatStyle, ParseStrategy {
    public func format(_ value: Date) -> String { fatalError() }
    public func parse(_ value: String) throws -> Date { fatalError() }
    public var parseStrategy: Date.ISO8601FormatStyle { self }
}
extension FormatStyle where Self == Date.ISO8601FormatStyle {
    public static var iso8601: Self { .init() }
}
extension ParseStrategy where Self == Date.ISO8601FormatStyle {
    public static var iso8601: Self { .init() }
}
extension ParseableFormatStyle where Self == Date.ISO8601FormatStyle {
    public static var iso8601: Self { .init() }
}

// https://developer.apple.com/documentation/swift/duration/unitsformatstyle
extension Duration {
    public struct UnitsFormatStyle: FormatStyle, Sendable {
        public struct Unit: Codable, Hashable, Sendable {
            public static var weeks: Unit { .init() }
            public static var days: Unit { .init() }
            public static var hours: Unit { .init() }
            public static var minutes: Unit { .init() }
            public static var seconds: Unit { .init() }
            public static var milliseconds: Unit { .init() }
            public static var microseconds: Unit { .init() }
            public static var nanoseconds: Unit { .init() }
        }
        public struct UnitWidth: Codable, Hashable, Sendable {
            public static var wide: UnitWidth { .init() }
            public static var abbreviated: UnitWidth { .init() }
            public static var condensedAbbreviated: UnitWidth { .init() }
            public static var narrow: UnitWidth { .init() }
        }
        public struct ZeroValueUnitsDisplayStrategy: Codable, Hashable, Sendable {
            public static var hide: ZeroValueUnitsDisplayStrategy { .init() }
            public static func show(length: Int) -> ZeroValueUnitsDisplayStrategy { .init() }
        }
        public struct FractionalPartDisplayStrategy: Codable, Hashable, Sendable {
            public static var hide: FractionalPartDisplayStrategy { .init() }
            public static func hide(rounded: FloatingPointRoundingRule = .toNearestOrEven) -> FractionalPartDisplayStrategy {
                .init()
            }
            public static func show(
                length: Int, rounded: FloatingPointRoundingRule = .toNearestOrEven, increment: Double? = nil
            ) -> FractionalPartDisplayStrategy { .init() }
        }
        public func format(_ value: Duration) -> String { fatalError() }
        public func locale(_ locale: Locale) -> Self { self }
    }

    // https://developer.apple.com/documentation/swift/duration/formatted(_:)
    public func formatted<S: FormatStyle>(_ v: S) -> S.FormatOutput where S.FormatInput == Self { fatalError() }
    public func formatted() -> String { fatalError() }
}

// https://developer.apple.com/documentation/foundation/formatstyle/units(allowed:width:maximumunitcount:zerovalueunits:valuelength:fractionalpart:)
extension FormatStyle where Self == Duration.UnitsFormatStyle {
    public static func units(
        allowed units: Set<Duration.UnitsFormatStyle.Unit> = [.hours, .minutes, .seconds],
        width: Duration.UnitsFormatStyle.UnitWidth = .abbreviated, maximumUnitCount: Int? = nil,
        zeroValueUnits: Duration.UnitsFormatStyle.ZeroValueUnitsDisplayStrategy = .hide, valueLength: Int? = nil,
        fractionalPart: Duration.UnitsFormatStyle.FractionalPartDisplayStrategy = .hide
    ) -> Self { .init() }
}
